"""The values that cross the engine's border: jobs, failures, TLS files and the table of worker kinds."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

State = Literal["queued", "running", "done", "failed", "cancelled", "timed_out", "crashed"]
STATES: tuple[State, ...] = get_args(State)
LIVE_STATES: frozenset[State] = frozenset({"queued", "running"})


class EngineError(Exception):
    """Why the engine cannot do its work, in one sentence that may be shown to people; `log` holds the details."""

    def __init__(self, sentence: str, log: str = "") -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.log = log


@dataclass(frozen=True, kw_only=True)
class Failure:
    """Why a job has no result: `kind` for programs, `sentence` for people, `log` for those who want every detail."""

    kind: str
    sentence: str
    log: str


@dataclass(frozen=True, kw_only=True)
class Job:
    """A job as it stood when it was asked for; times are unix seconds, `done` of `total` is the task's own count.

    `ahead` counts the live jobs that the same worker takes first. `result` is set in state "done" alone,
    `failure` in "failed", "timed_out" and "crashed".
    """

    id: str
    key: str
    title: str
    state: State
    ahead: int
    text: str
    done: int
    total: int
    submitted_s: float
    started_s: float | None
    ended_s: float | None
    result: bytes | None
    failure: Failure | None


@dataclass(frozen=True, kw_only=True)
class TlsFiles:
    """PEM files for a scheduler elsewhere: the authority of both sides, and this side's certificate and key."""

    ca: Path
    cert: Path
    key: Path


@dataclass(frozen=True, kw_only=True)
class WorkerKind:
    """One kind of worker; its name is also the dask resource (1 a worker) that a job of that kind takes up. `again` says
    what follows its death.

    One thread a worker is not a setting: torch must be used in the thread that imported it, and one profile runs at a
    time.
    """

    name: str
    what: str
    again: str = "A new one is started by itself."


#: The worker for sweeps measures nothing itself and never imports torch: each series has a process of its own under it, so
#: that a visitor's runs, which the other worker carries out between two points, leave what that process compiled alone.
KINDS: tuple[WorkerKind, ...] = (
    WorkerKind(name="gpu", what="the worker", again="A new one is started by itself; press Run again."),
    WorkerKind(name="sweep", what="the sweep's worker"),
)
