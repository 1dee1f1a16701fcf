"""Carries a sweep out: its plan point by point, each kept as it finishes, past points that fail, and on where it was left.

Knows neither torch nor dask nor Streamlit: who measures a point is handed in as a function.
"""

from __future__ import annotations

import datetime
import logging
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any, Protocol

from core.analysis.wording import counted
from core.store import manifest as manifests
from core.store import runfile
from core.store.manifest import Device, Failure, Manifest
from core.store.point import begun
from core.store.runfile import RunFileError
from core.store.sweepentry import SweepEntry, SweepError, conducting
from core.store.sweeps import Sweeps
from core.sweep import Sweep, Task, axis_sizes, plan, workload_at
from core.sweep_order import PointOrder, point_id, point_order
from core.workload import backend_of

#: A point that took its process along is tried once more, for the cause may have been another's.
ATTEMPTS = 2
#: So many dead processes one after the other are no accident.
CRASHES_MAX = 3
_APART = "Measured again after later sizes of its list; the process that measured those had never finished this call."
RUNNING, WAITING, DONE, CANCELLED, FAILED = "running", "waiting", "done", "cancelled", "failed"
LIVE_STATES = (RUNNING, WAITING)
log = logging.getLogger("fusionscope")


class PointError(Exception):
    """Why there is no run file of a point: "crashed" or "timed_out" (this point alone), "ledger" (its series cannot go on),
    or another kind (nothing can)."""

    def __init__(self, kind: str, sentence: str, log: str = "") -> None:
        super().__init__(sentence)
        self.kind, self.sentence, self.log = kind, sentence, log


class Cancelled(Exception):  # noqa: N818 it is no error
    """Raised by a report once the sweep is cancelled."""


class Report(Protocol):
    """What a measuring function tells while it works; raises Cancelled where it shall stop."""

    def __call__(self, text: str, done: int, total: int) -> None:
        """Says what happens now."""

    def waits(self, text: str) -> None:
        """Says that nothing happens yet, and what is waited for."""


Execute = Callable[[PointOrder, Report], bytes]
#: Holds a sweep's place among those that are measured at once; tells how many must end before, while it waits.
Turn = Callable[[Callable[[int], None]], AbstractContextManager[None]]


@dataclass(frozen=True)
class Progress:
    """Where a sweep stands. `state` is "running", "waiting" (for others' work), "done", "cancelled" or "failed"; `done` of
    `total` points are there. `backend` and `point` name what is measured ("compile", "batch 16"), `text` what happens to
    it. `seconds_left` is None while it is unknown. `problem` says in one sentence why the sweep is not whole, `log` has the
    details; None and "" where nothing is wrong."""

    sweep_id: str
    state: str
    done: int
    total: int
    backend: str = ""
    point: str = ""
    text: str = ""
    seconds_left: float | None = None
    problem: str | None = None
    log: str = ""


class Conductor:
    """One sweep being carried out, once `turn` lets it. `start` does it in a thread of its own, `run` in the caller's."""

    def __init__(
        self, sweeps: Sweeps, entry: SweepEntry, execute: Execute, turn: Turn = lambda _waits: nullcontext()
    ) -> None:
        self.entry, self._sweeps, self._execute, self._turn = entry, sweeps, execute, turn
        self._cancelled = threading.Event()
        self._lock = threading.Lock()
        self._progress = Progress(entry.head.id, RUNNING, len(entry.done), entry.total)
        self._again: frozenset[int] = frozenset()
        self._seconds: dict[bool, list[float]] = {True: [], False: []}
        self._left: dict[bool, int] = {True: 0, False: 0}
        self._point_start: float | None = None
        self._thread = threading.Thread(target=self.run, name=f"sweep-{entry.head.id}", daemon=True)

    @property
    def progress(self) -> Progress:
        """Where it stands now."""
        with self._lock:
            found = replace(self._progress, seconds_left=self._seconds_left())
        stopping = self._cancelled.is_set() and found.state in LIVE_STATES
        return replace(found, text="being cancelled", seconds_left=None) if stopping else found

    @property
    def live(self) -> bool:
        """Whether it still goes on."""
        return self.progress.state in LIVE_STATES

    def start(self) -> None:
        """Carries the sweep out in the background."""
        self._thread.start()

    def join(self, timeout_s: float | None = None) -> None:
        """Waits for the end of what `start` began."""
        self._thread.join(timeout_s)

    def cancel(self) -> None:
        """Stops as soon as what is being measured can be stopped; the points that are there stay."""
        self._cancelled.set()

    def run(self) -> Progress:
        """Carries the sweep out; how it ended. Raises nothing but what comes from outside, such as KeyboardInterrupt."""
        try:
            with conducting(self.entry), self._turn(self._waits):
                self._go_through()
        except Cancelled:
            self._say(state=CANCELLED, text="")
        except PointError as error:
            self._say(state=FAILED, text="", problem=error.sentence, log=error.log)
        except (SweepError, RunFileError) as error:
            self._say(state=FAILED, text="", problem=str(error))
        except Exception as error:
            log.exception("the sweep %s stumbled", self.entry.head.id)
            sentence = f"Sorry, the sweep stopped on an error nobody expected ({type(error).__name__}); resume it."
            self._say(state=FAILED, text="", problem=sentence)
        return self.progress

    def _go_through(self) -> None:
        if self.entry.origin != "live":
            raise SweepError("Only a sweep that was begun here can be resumed; run it anew.")
        sweep = self.entry.head.sweep
        there = {order_in(found): found for found in self._sweeps.manifests(self.entry)}
        self._again = lost(there.values())
        known = {order: found for order, found in there.items() if order not in self._again}
        tasks = [task for task in plan(sweep) if task.order not in known]
        for found in known.values():
            self._seconds[_compiles(sweep, found.workload.backend)].append(found.seconds)
        for task in tasks:
            self._left[_compiles(sweep, task.backend)] += 1
        self._say(state=RUNNING, text="", done=len(known))
        dead: dict[str, PointError] = {}
        crashes: list[Failure] = []
        process = ""
        for task in tasks:
            crashes, process = crashes if task.process == process else [], task.process
            if process not in dead:
                try:
                    found = self._measured(task, known)
                except PointError as error:
                    if error.kind != "ledger":
                        raise
                    dead[process] = error
                else:
                    known[task.order] = found
                    self._say(done=len(known))
                    crashed = found.failure if found.failure is not None and found.failure.kind == "crashed" else None
                    crashes = [*crashes, crashed] if crashed is not None else []
                if len(crashes) >= CRASHES_MAX:
                    raise _too_many(self._progress.backend, crashes[-1])
            with self._lock:
                self._left[_compiles(sweep, task.backend)] -= 1
        first = next(iter(dead.values()), None)
        if first is not None:
            raise first
        self._say(state=DONE, text="", backend="", point="")

    def _measured(self, task: Task, known: dict[int, Manifest]) -> Manifest:
        """Measures a point and keeps it, also where it failed. Raises PointError, Cancelled, SweepError, RunFileError."""
        sweep = self.entry.head.sweep
        workload = workload_at(sweep, task.backend, task.index)
        self._say(state=RUNNING, backend=backend_of(workload).title, point=point_words(sweep, task.index), text="")
        calls = {
            order: found.point.call if found.point else None
            for order, found in known.items()
            if not (_is_lost(found) or (found.point and found.point.apart))
        }
        start = time.perf_counter()
        with self._lock:
            self._point_start = start
        data = self._performed(point_order(self.entry.head.id, sweep, task, calls), list(known.values()), start)
        found = runfile.read_manifest(data)
        if task.order in self._again and _lived_without(sweep, task, known):
            data = _set_apart(data, found)
            found = runfile.read_manifest(data)
        _check_same(found, known.values())
        try:
            self._sweeps.add(self.entry.head.id, task.order, data)
        except OSError as error:
            sentence = f"The sweep stopped, for the disk refused a point ({error.strerror}); make room and resume it."
            raise PointError("disk", sentence) from error
        with self._lock:
            self._point_start = None
            self._seconds[_compiles(sweep, task.backend)].append(time.perf_counter() - start)
        return found

    def _performed(self, order: PointOrder, known: Sequence[Manifest], start: float) -> bytes:
        report = _Reporter(self._say, self._cancelled)
        for attempt in range(1, ATTEMPTS + 1):
            if self._cancelled.is_set():
                raise Cancelled
            try:
                return self._execute(order, report)
            except PointError as error:
                if error.kind == "crashed" and attempt < ATTEMPTS:
                    self._say(text="its process died; trying once more")
                elif error.kind in ("crashed", "timed_out"):
                    failure = Failure(error.kind, error.sentence, error.log)
                    return _failed_point(order, failure, known, time.perf_counter() - start)
                else:
                    raise
        raise AssertionError("every attempt returns or raises")

    def _waits(self, ahead: int) -> None:
        ended = f"{counted(ahead, 'sweep')} before it {'has' if ahead == 1 else 'have'} ended"
        _Reporter(self._say, self._cancelled).waits(f"its turn comes when {ended}")

    def _say(self, **changes: Any) -> None:
        with self._lock:
            self._progress = replace(self._progress, **changes)

    def _seconds_left(self) -> float | None:
        """From how long points of a backend that compiles, and of one that does not, took so far."""
        if self._progress.state not in LIVE_STATES or not any(self._left.values()):  # not begun: it waits for its turn
            return None
        total = 0.0
        for compiles, count in self._left.items():
            seconds = self._seconds[compiles]
            if count and not seconds:
                return None
            total += count * sum(seconds) / max(1, len(seconds))
        spent = time.perf_counter() - self._point_start if self._point_start is not None else 0.0
        return max(0.0, total - spent)


class _Reporter:
    """Hands on what a measuring function tells, and stops it once the sweep is cancelled."""

    def __init__(self, say: Callable[..., None], cancelled: threading.Event) -> None:
        self._say, self._cancelled = say, cancelled

    def __call__(self, text: str, done: int, total: int) -> None:
        self._tell(RUNNING, text)

    def waits(self, text: str) -> None:
        """Says that nothing happens yet, and what is waited for."""
        self._tell(WAITING, text)

    def _tell(self, state: str, text: str) -> None:
        if self._cancelled.is_set():
            raise Cancelled
        self._say(state=state, text=text)


def order_in(found: Manifest) -> int:
    """The place in the plan of a point's manifest."""
    assert found.point is not None, "a point of a sweep"
    return found.point.order


def point_words(sweep: Sweep, index: int) -> str:
    """The sizes at a position of the list, as people say them: "batch 16, seq 512"."""
    sizes = zip(axis_sizes(sweep), sweep.points[index], strict=True)
    return ", ".join(f"{size.title.lower()} {value:,}" for size, value in sizes)


def _compiles(sweep: Sweep, backend: str) -> bool:
    return backend_of(workload_at(sweep, backend, 0)).compiles


def lost(found: Iterable[Manifest]) -> frozenset[int]:
    """The places in the plan of the points whose process was lost with them: they are measured again where a sweep is
    resumed."""
    return frozenset(order_in(one) for one in found if _is_lost(one))


def _is_lost(found: Manifest) -> bool:
    return found.failure is not None and found.failure.ended_process


def _lived_without(sweep: Sweep, task: Task, known: Iterable[int]) -> bool:
    """Whether a process went on through later points of the list without this one."""
    later = {one.order for one in plan(sweep) if one.process == task.process and one.order > task.order}
    return sweep.mode == "shared" and not later.isdisjoint(known)


def _set_apart(data: bytes, found: Manifest) -> bytes:
    """The run file of a point that no later one of its list lived with, marked as such."""
    assert found.point is not None, "a point of a sweep"
    marked = replace(found, point=replace(found.point, apart=True), notes=(*found.notes, _APART))
    return runfile.pack(marked, runfile.read_trace_bytes(data), runfile.read_code(data))


def _too_many(backend: str, last: Failure) -> PointError:
    told = f"{backend}: {CRASHES_MAX} points one after the other took their process along, so the sweep stopped."
    return PointError("crashed", f"{told} {last.sentence}", last.log)


def _failed_point(order: PointOrder, failure: Failure, known: Sequence[Manifest], seconds: float) -> bytes:
    """The run file of a point that left nothing behind, on the device of the sweep's other points."""
    task, sweep = order.task, order.sweep
    like = next((found for found in reversed(known) if found.device.kind != "unknown"), None)
    workload = workload_at(sweep, task.backend, task.index)
    protocol = manifests.protocol_for(workload, light=True)
    return runfile.pack(
        Manifest(
            id=point_id(order.sweep_id, task.order),
            workload=workload,
            protocol=protocol,
            created=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            status="failed",
            device=like.device if like else Device("unknown", "unknown"),
            versions=like.versions if like else {},
            seconds=round(seconds, 3),
            failure=failure,
            point=begun(order.sweep_id, sweep, task),
        ),
        None,
        {},
    )


def _check_same(found: Manifest, known: Iterable[Manifest]) -> None:
    """A sweep is of one device and one PyTorch. Raises PointError where a resumed one would go on with another."""
    for other in known:
        if "unknown" in (found.device.kind, other.device.kind):
            continue
        if found.device.name != other.device.name:
            raise PointError(
                "device",
                f"This sweep was begun on {other.device.name}, and this is {found.device.name}; start a new sweep here.",
            )
        if found.versions.get("torch") != other.versions.get("torch"):
            raise PointError(
                "device",
                f"This sweep was begun with torch {other.versions.get('torch')}, and this is torch "
                f"{found.versions.get('torch')}; start a new sweep.",
            )
        return
