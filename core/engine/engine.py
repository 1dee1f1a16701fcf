"""The engine: takes jobs from the pages, has them carried out one by one by a worker process, survives its death.

One lane (a thread) for each kind of worker takes that kind's jobs in order and watches each until it has ended. Nothing
here raises into a page once the engine is made: what goes wrong becomes the job's own failure.
"""

from __future__ import annotations

import atexit
import json
import logging
import signal
import threading
import time
import traceback
from collections.abc import Callable
from concurrent.futures import CancelledError
from dataclasses import replace
from pathlib import Path

from distributed import Future, KilledWorker

from core.engine.client import Link
from core.engine.jobs import Ending, JobBook, Record
from core.engine.launch import WorkerLog
from core.engine.model import KINDS, EngineError, Failure, Job, State, TlsFiles, WorkerKind
from core.engine.task import LAST_RESULT_MARK, RESULT_MARK

ATTEMPTS = 3
TICK_S = 0.25
WORKER_WAIT_S = 60.0
GATHER_TIMEOUT_S = 60.0
LATE_START_S = 0.3
POLL_S = 0.02
EXIT_NEWS_S = 5.0
LANE_END_S = 5.0

logger = logging.getLogger(__name__)


class Engine:
    """Where work is carried out: in worker processes, behind a dask scheduler of its own or one elsewhere."""

    def __init__(
        self,
        *,
        address: str | None = None,
        tls: TlsFiles | None = None,
        timeout_s: float = 600,
        extra_path: tuple[Path, ...] = (),
        log_folder: Path | None = None,
        on_done: Callable[[Job], None] | None = None,
    ) -> None:
        """Return at once and start in the background; jobs wait meanwhile.

        address: None for a cluster of its own on this machine, else a scheduler's tls://host:port (with `tls`), or
            tcp:// on loopback. Workers elsewhere need `core` importable, a nanny, one thread and the resource of their
            kind: `dask worker ... --nthreads 1 --resources gpu=1`, and another one with sweep=1.
        timeout_s: how long a job may run if its `submit` does not say.
        extra_path: folders from which the own cluster's workers can import besides this project's.
        log_folder: where the own cluster writes engine.log; without one its output is dropped.
        on_done: called in the engine's thread after a job has ended, before anybody sees it ended. If it raises, a job
            that was done is failed. Not called for a job that was cancelled while it waited.

        EngineError: the address or the TLS files cannot be used.
        """
        self._timeout_s = timeout_s
        self._on_done = on_done
        self._book = JobBook()
        self._log = WorkerLog(log_folder)
        self._link = Link(address=address, tls=tls, extra_path=extra_path, log=self._log, on_event=self._book.hear)
        self._kinds = {kind.name: kind for kind in KINDS}
        self._lanes = [
            threading.Thread(target=self._run_lane, args=(kind,), name=f"engine-{kind.name}", daemon=True)
            for kind in KINDS
        ]
        for lane in self._lanes:
            lane.start()
        atexit.register(self.close)

    def submit(
        self, target: str, payload: bytes, *, key: str, title: str, timeout_s: float | None = None, kind: str = "gpu"
    ) -> str:
        """Queue a job and return its id; a live job with the same key is shared, not run twice.

        target: "package.module:function", called in the worker as function(payload, report) -> bytes, where
            report(text, done, total) tells its progress. An exception with the attributes `kind` and `sentence` is an
            expected failure.
        title: what people read, also in the sentences about failures.
        timeout_s: seconds from its start after which the job is stopped.

        EngineError: the engine is closed. KeyError: there is no such kind of worker.
        """
        limit_s = self._timeout_s if timeout_s is None else timeout_s
        return self._book.add(
            Record(key=key, title=title, kind=self._kinds[kind], target=target, payload=payload, timeout_s=limit_s)
        )

    def job(self, job_id: str) -> Job | None:
        """A job as it stands now; None for an id that is unknown or has been dropped."""
        return self._book.snapshot(job_id)

    def jobs(self) -> tuple[Job, ...]:
        """The jobs as they stand now, oldest first; of ended ones only the most recent are kept."""
        return self._book.snapshots()

    def cancel(self, job_id: str) -> bool:
        """Drop a waiting job at once, or have a running one's worker killed; False if there is nothing to cancel."""
        return self._book.cancel(job_id)

    def worker_pid(self, kind: str = "gpu") -> int | None:
        """The process id of the worker of a kind; None while there is none."""
        return self._link.worker_pid(kind)

    def cluster_pid(self) -> int | None:
        """The process id of the engine's own cluster; None while there is none."""
        return self._link.cluster_pid

    def close(self) -> None:
        """Cancel what is live and end the own cluster with its workers. May be called again."""
        atexit.unregister(self.close)
        self._book.close()
        self._link.close()
        for lane in self._lanes:
            lane.join(LANE_END_S)

    def _run_lane(self, kind: WorkerKind) -> None:
        while True:
            self._warm_up()
            record = self._book.take(kind)
            if record is None:
                return
            try:
                ending = self._carry_out(record)
            except EngineError as error:
                ending = _failed("engine", error.sentence, error.log)
            except Exception as error:  # a lane that died would leave every later job waiting for ever
                logger.exception("the engine stumbled over job %s", record.id)
                sentence = f"Sorry, the engine itself stumbled over this run ({type(error).__name__}); try again."
                ending = _failed("engine", sentence, traceback.format_exc())
            self._end(record, ending)

    def _warm_up(self) -> None:
        try:
            self._link.ensure()
        except EngineError as error:
            # The next job tries again, and is the place to say what is wrong
            logger.info("the workers are not ready: %s", error.sentence)
        except Exception:  # a lane that died would leave every later job waiting for ever
            logger.exception("the engine stumbled over its start")

    def _end(self, record: Record, ending: Ending) -> None:
        job = self._book.final(record, ending)
        if job is None:
            return
        if self._on_done is not None:
            try:
                self._on_done(job)
            except Exception as error:  # the caller's code, and the lane must go on
                logger.exception("on_done of job %s", job.id)
                if job.state == "done":
                    sentence = f"“{job.title}” ran, but its result could not be kept ({type(error).__name__}: {error})."
                    failure = Failure(kind="on_done", sentence=sentence, log=traceback.format_exc())
                    job = replace(job, state="failed", result=None, failure=failure)
        self._book.finish(record, job)

    def _carry_out(self, record: Record) -> Ending:
        record.log_start_bytes = self._log.size_bytes()
        for attempt in range(ATTEMPTS):
            if record.cancel_asked:
                return Ending(state="cancelled")
            self._book.say(record, f"waiting for {record.kind.what}")
            future = self._link.send(record, attempt)
            ending = self._watch(record, future)
            if ending is not None:
                return ending
        return _failed(
            "crashed",
            f"“{record.title}” could not start: {record.kind.what} died {ATTEMPTS} times before it. Try again.",
            self._log.since(record.log_start_bytes),
            state="crashed",
        )

    def _watch(self, record: Record, future: Future) -> Ending | None:
        """How a job that was handed to dask ended; None if it never started and its worker or cluster is gone."""
        future.add_done_callback(lambda _: record.wake.set())
        sent_s = time.monotonic()
        while not future.done() and self._link.alive():
            record.wake.wait(TICK_S)
            record.wake.clear()
            now_s = time.monotonic()
            if record.cancel_asked:
                self._stop(record, future)
                return Ending(state="cancelled")
            if record.started_twice:
                self._stop(record, future)
                return self._crashed(record)
            if record.started_monotonic_s is None:
                if now_s - sent_s > WORKER_WAIT_S and not self._link.workers(record.kind.name):
                    self._give_up_waiting(record, future)
            elif now_s - record.started_monotonic_s > record.timeout_s and not future.done():
                self._stop(record, future)
                sentence = (
                    f"“{record.title}” took longer than {record.timeout_s:g} s and was stopped; "
                    "smaller sizes or a longer limit may help."
                )
                return _failed("timed_out", sentence, self._log.since(record.log_start_bytes), state="timed_out")
        return self._outcome(record, future)

    def _outcome(self, record: Record, future: Future) -> Ending | None:
        if future.status == "finished":
            try:
                marked = future.result(timeout=GATHER_TIMEOUT_S)
                if marked[:1] == LAST_RESULT_MARK:
                    self._link.kill(record)
                return _decoded(marked)
            except (OSError, TimeoutError, CancelledError, KilledWorker):
                # The worker died with the result in its hands
                return self._crashed(record)
        if future.status == "error" and not isinstance(error := future.exception(), KilledWorker):
            sentence = f"{record.kind.what.capitalize()} could not take the job; is it the same version as this one?"
            return _failed("engine", sentence, repr(error))
        return None if record.started_s is None else self._crashed(record)

    def _stop(self, record: Record, future: Future) -> None:
        future.cancel()
        # It may have started just before it was cancelled, and would hold the worker unseen
        deadline_s = time.monotonic() + LATE_START_S
        while record.worker is None and time.monotonic() < deadline_s:
            time.sleep(POLL_S)
        self._link.kill(record)

    def _give_up_waiting(self, record: Record, future: Future) -> None:
        if self._link.owns_cluster:
            self._link.reset()
            return
        future.cancel()
        raise EngineError(
            f"The scheduler has had no worker with the resource {record.kind.name} for {WORKER_WAIT_S:g} s."
        )

    def _crashed(self, record: Record) -> Ending:
        deadline_s = time.monotonic() + EXIT_NEWS_S
        while (
            record.exit_code is None
            and self._link.owns_cluster
            and self._link.alive()
            and time.monotonic() < deadline_s
        ):
            time.sleep(POLL_S)
        sentence = (
            f"{record.kind.what.capitalize()} process (pid {record.worker_pid}) died while it ran “{record.title}”"
            f"{_cause(record.exit_code)}. {record.kind.again}"
        )
        return _failed("crashed", sentence, self._log.since(record.log_start_bytes), state="crashed")


def _cause(exit_code: int | None) -> str:
    if exit_code is None:
        return ""
    if exit_code >= 0:
        return f" (exit code {exit_code})"
    return f" (signal {-exit_code}: {signal.strsignal(-exit_code)})"


def _failed(kind: str, sentence: str, log: str, *, state: State = "failed") -> Ending:
    return Ending(state=state, failure=Failure(kind=kind, sentence=sentence, log=log))


def _decoded(marked: bytes) -> Ending:
    mark, body = marked[:1], marked[1:]
    if mark in (RESULT_MARK, LAST_RESULT_MARK):
        return Ending(state="done", result=body)
    return _failed(**json.loads(body))
