"""One sweep of the store, and who may write to it."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from core.store import sweepfile
from core.store.sweepfile import SweepHead


class SweepError(ValueError):
    """What cannot be done to a sweep; the text is one sentence."""


@dataclass(frozen=True)
class SweepEntry:
    """One sweep in the store. `origin` is one of core.store.entry.ORIGINS; `done` are the places in the plan of the points
    that are there; `stamp` changes with every point."""

    head: SweepHead
    folder: Path
    origin: str
    done: frozenset[int]
    stamp: str

    @property
    def total(self) -> int:
        """How many points the plan has."""
        sweep = self.head.sweep
        return len(sweep.points) * len(sweep.backends) * sweep.rounds

    @property
    def complete(self) -> bool:
        """Whether every point is there."""
        return len(self.done) >= self.total

    @property
    def recorded(self) -> bool:
        """Whether the sweep was shipped rather than made or uploaded here."""
        return self.origin == "recorded"


@contextlib.contextmanager
def conducting(entry: SweepEntry) -> Iterator[None]:
    """Holds a sweep for its conductor alone, across processes. Raises SweepError where another one holds it or it has gone."""
    try:
        head = os.open(entry.folder / sweepfile.HEAD, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError as error:
        raise SweepError("This sweep is not here any more; reload the page.") from error
    try:
        try:
            fcntl.flock(head, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise SweepError(
                "This sweep is being measured just now, here or by another FusionScope; wait for it or cancel it there."
            ) from error
        yield
    finally:
        os.close(head)
