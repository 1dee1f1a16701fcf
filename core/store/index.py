"""The index: the head of every run file, in memory and in one file on disk, so that a warm one opens no run file.

It is a memory and no source of truth: damaged, foreign or lost, it is made anew from the run files.
"""

from __future__ import annotations

import functools
import hashlib
import logging
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from core.store import runfile
from core.store.entry import Entry
from core.store.files import changed_ns, files_in, safe_name, write_whole
from core.store.head import Head, head_of
from core.store.uploads import unknown_here
from core.workload import Workload

#: What the files in the index are read by: where one of these changed, the index is another version's.
_READERS = (
    *("workload.py", "estimate.py", "store/*.py", "layers/*.py", "backends/*.py"),
    *("analysis/spread.py", "analysis/ledger.py"),
)
_ROOM = Path(__file__).resolve().parents[1]
#: Runs come by rename and go by unlink, which both change their folder: an unchanged folder is not looked through again
#: for this long. What somebody rewrites in place is seen after it.
TRUSTED_NS = 1_500_000_000
#: File times advance in ticks: a folder that changed right before it was read may have changed again in the same tick.
TICK_NS = 100_000_000
log = logging.getLogger("fusionscope")


@dataclass(frozen=True)
class Known:
    """What is known of a file of that stamp: the head of its run, or why it cannot be read."""

    stamp: str
    head: Head | None
    why: str | None = None


@dataclass(frozen=True, eq=False)
class Snapshot:
    """All runs at one moment, newest first, also by id and (without points of sweeps) by workload; `problems` says why a
    file is no run."""

    entries: tuple[Entry, ...]
    by_id: dict[str, tuple[Entry, ...]]
    by_workload: dict[Workload, tuple[Entry, ...]]
    problems: dict[Path, str]


@dataclass(frozen=True)
class _Saved:
    readers: str
    known: dict[str, Known]


@dataclass
class Index:
    """The runs in `folders`, by origin. `kept` holds one empty file for each kept run. Safe for several threads."""

    file: Path
    folders: tuple[tuple[str, Path], ...]
    kept: Path
    _known: dict[str, Known] | None = field(default=None, repr=False)
    _listing: tuple[object, ...] = field(default=(), repr=False)
    _snapshot: Snapshot | None = field(default=None, repr=False)
    _trusted: tuple[tuple[int | None, ...], int] | None = field(default=None, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def snapshot(self) -> Snapshot:
        """All runs as they are now. The same object is returned while nothing changed."""
        with self._lock:
            times = tuple(changed_ns(folder) for folder in (*(folder for _, folder in self.folders), self.kept))
            if (
                self._snapshot
                and self._trusted
                and self._trusted[0] == times
                and time.monotonic_ns() < self._trusted[1]
            ):
                return self._snapshot
            settled = time.time_ns() - max((at for at in times if at is not None), default=0) > TICK_NS
            files = [(origin, path, stamp) for origin, folder in self.folders for path, stamp in _run_files(folder)]
            kept = frozenset(name for name, _ in files_in(self.kept))
            listing = (tuple(files), kept)
            if self._snapshot is None or listing != self._listing:
                self._snapshot, self._listing = self._made(files, kept), listing
            self._trusted = (times, time.monotonic_ns() + TRUSTED_NS) if settled else None
            return self._snapshot

    def changed(self) -> None:
        """To be called after a file was added or removed: the next look sees it, whatever the clock of the disk says."""
        with self._lock:
            self._trusted = None

    def _made(self, files: list[tuple[str, Path, str]], kept: frozenset[str]) -> Snapshot:
        before = _load(self.file) if self._known is None else self._known
        now: dict[str, Known] = {}
        for _, path, stamp in files:
            known = before.get(str(path))
            now[str(path)] = known if known and known.stamp == stamp else _read(path, stamp)
        if now.keys() != before.keys() or any(now[path] is not before[path] for path in now):
            self._save(now)
        self._known = now
        entries, problems = [], {}
        for origin, path, stamp in files:
            known = now[str(path)]
            if known.head is None:
                problems[path] = known.why or ""
            else:
                is_kept = origin != "recorded" and safe_name(known.head.id) in kept
                entries.append(Entry(path, known.head, origin, stamp, is_kept))
        entries.sort(key=lambda entry: entry.head.created, reverse=True)
        by_id: dict[str, tuple[Entry, ...]] = {}
        by_workload: dict[Workload, list[Entry]] = {}
        for entry in entries:
            by_id[entry.head.id] = (*by_id.get(entry.head.id, ()), entry)
            if (
                entry.head.sweep is None
            ):  # a point is shaped by what its process compiled before: it answers nothing else
                by_workload.setdefault(entry.head.workload, []).append(entry)
        return Snapshot(tuple(entries), by_id, {key: tuple(found) for key, found in by_workload.items()}, problems)

    def _save(self, known: dict[str, Known]) -> None:
        # A folder that recordings are written to, or one that is not there, is no home of runs and gets no index.
        if not any(folder.is_dir() for origin, folder in self.folders if origin != "recorded"):
            return
        try:
            write_whole(self.file, msgspec.json.encode(_Saved(_readers(), known)))
        except OSError:  # a full or read-only disk: the next server reads the run files again
            log.warning("the index of the runs cannot be kept", exc_info=True)


def _load(file: Path) -> dict[str, Known]:
    """What a file says is known; nothing where it is missing, damaged or written by another version."""
    try:
        saved = msgspec.json.decode(file.read_bytes(), type=_Saved)
    except FileNotFoundError:
        return {}
    except (OSError, msgspec.MsgspecError, RecursionError):
        log.warning("the index of the runs cannot be read and is made anew", exc_info=True)
        return {}
    return saved.known if saved.readers == _readers() else {}


@functools.cache
def _readers() -> str:
    """A digest of the code that decides what a run file says, and whether it can be shown."""
    digest = hashlib.sha256()
    for pattern in _READERS:
        for path in sorted(_ROOM.glob(pattern)):
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _read(path: Path, stamp: str) -> Known:
    try:
        manifest = runfile.read_manifest(path)
    except runfile.RunFileError as error:
        # What the disk refuses today it may give tomorrow, with the same stamp: no stamp, so that it is read again.
        return Known("" if isinstance(error.__cause__, OSError) else stamp, None, str(error))
    why = unknown_here(manifest.workload)
    return Known(stamp, None if why else head_of(manifest), why)


def _run_files(folder: Path) -> list[tuple[Path, str]]:
    found = sorted(file for file in files_in(folder) if file[0].endswith(runfile.SUFFIX) and file[0][0] != ".")
    return [(folder / name, stamp) for name, stamp in found]
