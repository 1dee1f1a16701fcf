"""The book of jobs: who waits, who runs, how each ended. Safe to use from every thread; knows nothing of dask."""

from __future__ import annotations

import threading
import time
import uuid
from dataclasses import dataclass, field, replace
from typing import Any

from core.engine.model import LIVE_STATES, EngineError, Failure, Job, State, WorkerKind

KEPT_JOBS = 50


@dataclass(frozen=True, kw_only=True)
class Ending:
    """How a job ended."""

    state: State
    result: bytes | None = None
    failure: Failure | None = None


@dataclass(kw_only=True, eq=False)
class Record:
    """A job as the engine keeps it; written under the book's lock, `log_start_bytes` by its lane.

    `wake` is set when the lane should look.
    """

    key: str
    title: str
    kind: WorkerKind
    target: str
    payload: bytes
    timeout_s: float
    id: str = field(default_factory=lambda: uuid.uuid4().hex)
    state: State = "queued"
    text: str = ""
    done: int = 0
    total: int = 0
    submitted_s: float = field(default_factory=time.time)
    started_s: float | None = None
    started_monotonic_s: float | None = None
    ended_s: float | None = None
    result: bytes | None = None
    failure: Failure | None = None
    taken: bool = False
    worker: str | None = None
    worker_pid: int | None = None
    exit_code: int | None = None
    started_twice: bool = False
    cancel_asked: bool = False
    ending: bool = False
    log_start_bytes: int = 0
    wake: threading.Event = field(default_factory=threading.Event)

    @property
    def live(self) -> bool:
        """Whether the job still waits or runs."""
        return self.state in LIVE_STATES


class JobBook:
    """All jobs of one engine, in the order in which they were submitted."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._records: dict[str, Record] = {}
        self._closed = False

    def add(self, record: Record) -> str:
        """Enter a job and return its id, or the id of the live one that has the same key. EngineError once closed."""
        with self._changed:
            if self._closed:
                raise EngineError("The engine is closed.")
            for other in self._records.values():
                if other.live and other.key == record.key:
                    return other.id
            self._records[record.id] = record
            self._drop_old(record.kind)
            self._changed.notify_all()
            return record.id

    def _drop_old(self, kind: WorkerKind) -> None:
        # Of one kind: the hundreds of points of a sweep must not push a visitor's run out.
        own = [record for record in self._records.values() if record.kind == kind]
        surplus = len(own) - KEPT_JOBS
        if surplus > 0:
            for old in [record.id for record in own if not record.live][:surplus]:
                del self._records[old]

    def take(self, kind: WorkerKind) -> Record | None:
        """Wait for the next job of a kind and take it; None once the book is closed."""
        with self._changed:
            while not self._closed:
                for record in self._records.values():
                    if record.state == "queued" and record.kind == kind and not record.taken:
                        record.taken = True
                        return record
                self._changed.wait()
            return None

    def snapshot(self, job_id: str) -> Job | None:
        """One job as it stands; None if there is no such id, or no longer."""
        with self._changed:
            record = self._records.get(job_id)
            return None if record is None else self._job(record)

    def snapshots(self) -> tuple[Job, ...]:
        """All jobs as they stand, oldest first."""
        with self._changed:
            return tuple(self._job(record) for record in self._records.values())

    def _job(self, record: Record) -> Job:
        ahead = 0
        if record.state == "queued":
            for other in self._records.values():
                if other is record:
                    break
                ahead += other.live and other.kind == record.kind
        return Job(
            id=record.id,
            key=record.key,
            title=record.title,
            state=record.state,
            ahead=ahead,
            text=record.text,
            done=record.done,
            total=record.total,
            submitted_s=record.submitted_s,
            started_s=record.started_s,
            ended_s=record.ended_s,
            result=record.result,
            failure=record.failure,
        )

    def hear(self, message: dict[str, Any]) -> None:
        """Note what a worker (started, progress) or its nanny (exit) has said; other engines' jobs are passed over."""
        with self._changed:
            if message["event"] == "exit":
                for record in self._records.values():
                    if record.live and record.worker == message["worker"]:
                        record.exit_code = message["code"]
                        record.wake.set()
                return
            known = self._records.get(message["job"])
            if known is None:
                return
            if message["event"] == "started":
                known.started_twice = known.worker is not None
                known.worker, known.worker_pid = message["worker"], message["pid"]
                if known.state == "queued":
                    known.state, known.text = "running", ""
                    known.started_s, known.started_monotonic_s = time.time(), time.monotonic()
                known.wake.set()
            elif known.live:
                known.text, known.done, known.total = message["text"], message["done"], message["total"]

    def say(self, record: Record, text: str) -> None:
        """Set what a job is doing, while its own task cannot."""
        with self._changed:
            record.text = text

    def cancel(self, job_id: str) -> bool:
        """Drop a waiting job at once, ask for a running one to be stopped; False if it has ended or is just ending."""
        with self._changed:
            record = self._records.get(job_id)
            if record is None or not record.live or record.ending:
                return False
            record.cancel_asked = True
            if record.state == "queued":
                self._drop(record)
            record.wake.set()
            return True

    def final(self, record: Record, ending: Ending) -> Job | None:
        """The job as `finish` will show it, from now on past cancelling; None if it has been dropped already."""
        with self._changed:
            if not record.live:
                return None
            record.ending = True
            return replace(
                self._job(record),
                state=ending.state,
                ahead=0,
                result=ending.result,
                failure=ending.failure,
                ended_s=time.time(),
            )

    def finish(self, record: Record, job: Job) -> None:
        """Let everybody see how a job ended."""
        with self._changed:
            record.state, record.result, record.failure, record.ended_s = (
                job.state,
                job.result,
                job.failure,
                job.ended_s,
            )
            record.payload = b""

    def _drop(self, record: Record) -> None:
        record.cancel_asked = True
        record.state, record.ended_s, record.payload = "cancelled", time.time(), b""

    def close(self) -> None:
        """Take no more jobs; those that are not finished count as cancelled."""
        with self._changed:
            self._closed = True
            for record in self._records.values():
                if record.live and not record.ending:
                    self._drop(record)
                record.wake.set()
            self._changed.notify_all()
