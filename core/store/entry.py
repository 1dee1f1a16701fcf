"""One run as the store lists it: where its file lies, where it came from, and its head; the manifest on demand."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path

from core.store import runfile
from core.store.head import Head
from core.store.manifest import Manifest

#: Where a run came from: made by this FusionScope, shipped with it, or put into the store by hand.
ORIGINS = ("live", "recorded", "uploaded")
#: A page looks at one run, or compares a handful; their compile ledgers are what weighs.
_MANIFESTS_KEPT = 64


@dataclass(frozen=True)
class Entry:
    """One run in the store. `origin` is one of ORIGINS; `stamp` changes with the file; a kept run cannot be deleted."""

    path: Path
    head: Head
    origin: str
    stamp: str = ""
    kept: bool = False

    @property
    def manifest(self) -> Manifest:
        """The whole manifest, read from the file and remembered for a while.

        Raises RunFileError where the file is gone, damaged or another run's since it was listed.
        """
        found = _manifest(self.path, self.stamp)
        if found.id != self.head.id:
            raise runfile.RunFileError(
                f"The file of the run {self.head.id[:80]} now holds another run; reload the page."
            )
        return found

    @property
    def recorded(self) -> bool:
        """Whether the run was shipped rather than made or uploaded here."""
        return self.origin == "recorded"

    @property
    def stays_why(self) -> str | None:
        """Why the run cannot be deleted, in one sentence; None where it can."""
        if self.recorded:
            return "Shipped recordings stay."
        return "Kept runs stay until they are released." if self.kept else None


@functools.lru_cache(maxsize=_MANIFESTS_KEPT)
def _manifest(path: Path, stamp: str) -> Manifest:
    """The manifest in a file of that stamp, so that a replaced file is read again."""
    return runfile.read_manifest(path)
