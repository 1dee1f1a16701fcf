"""What stands between a sweep and whoever measures it: an engine's jobs, and the turn of sweeps that are begun at once."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from core.conductor import Cancelled, Execute, PointError, Report
from core.sweep import workload_at
from core.sweep_order import PointOrder, encode

POINT_TIMEOUT_S = 1800.0
POLL_S = 0.05
TARGET = "core.bench.series_host:point"
#: So many sweeps are measured side by side, point by point in turn: each keeps a process alive, of several hundred MB and
#: with a context on the GPU. Above what core.bench.series_host keeps, every point would start its process anew.
SIDE_BY_SIDE_MAX = 4


class Turns:
    """Lets a handful of sweeps be measured at a time; the next waits, in the order in which they were begun."""

    def __init__(self, most: int = SIDE_BY_SIDE_MAX) -> None:
        self._most, self._line, self._lock = most, list[object](), threading.Lock()

    @contextlib.contextmanager
    def __call__(self, waits: Callable[[int], None]) -> Iterator[None]:
        """Holds a place; `waits` is told how many sweeps must end before, again and again, and may raise to give up."""
        own = object()
        with self._lock:
            self._line.append(own)
        try:
            while (ahead := self._ahead(own)) > 0:
                waits(ahead)
                time.sleep(POLL_S)
            yield
        finally:
            with self._lock:
                self._line.remove(own)

    def _ahead(self, own: object) -> int:
        with self._lock:
            return self._line.index(own) + 1 - self._most


class Jobs(Protocol):
    """What is needed of an engine."""

    def submit(self, target: str, payload: bytes, *, key: str, title: str, timeout_s: float, kind: str) -> str:
        """Queues a job; its id."""

    def job(self, job_id: str) -> Any:
        """The job as it stands, None where it is unknown."""

    def cancel(self, job_id: str) -> bool:
        """Stops a job."""


def execute_on(engine: Jobs) -> Execute:
    """Has each point measured as a job of an engine's worker for sweeps."""

    def execute(order: PointOrder, report: Report) -> bytes:
        workload = workload_at(order.sweep, order.task.backend, order.task.index)
        job_id = engine.submit(
            TARGET,
            encode(order),
            key=f"sweep:{order.sweep_id}:{order.task.order}",
            title=f"{workload.title}, point {order.task.order + 1} of a sweep",
            timeout_s=POINT_TIMEOUT_S,
            kind="sweep",
        )
        try:
            while (job := _live(engine, job_id)) is not None:
                if job.state == "queued":
                    report.waits(f"{job.ahead} ahead" if job.ahead else job.text or "waiting for the worker")
                else:
                    report(job.text, job.done, job.total)
                time.sleep(POLL_S)
        except Cancelled:
            engine.cancel(job_id)
            # Who resumes the sweep would otherwise be given the very job that is just being stopped.
            while _live(engine, job_id) is not None:
                time.sleep(POLL_S)
            raise
        job = engine.job(job_id)
        if job is None:
            raise PointError("engine", "The engine has lost the point that it was measuring; resume the sweep.")
        if job.state == "cancelled":
            raise Cancelled
        if job.failure is not None:
            raise PointError(job.failure.kind, job.failure.sentence, job.failure.log)
        result: bytes = job.result
        return result

    return execute


def _live(engine: Jobs, job_id: str) -> Any:
    job = engine.job(job_id)
    return job if job is not None and job.state in ("queued", "running") else None
