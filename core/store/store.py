"""The store: the user's own runs, and under them the shipped recordings as a read-only layer.

A run is found by its workload first, then the best of several is chosen by device and age. The index is a
memory of manifests that were read; it is rebuilt from the files whenever they change.
"""

from __future__ import annotations

import hashlib
import logging
import os
import stat
import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from core.store import runfile
from core.store.manifest import PROTOCOL, Device, Manifest
from core.trace import Tables, TraceError, open_tables, read_trace, write_tables
from core.workload import Workload, WorkloadError, make, to_fields

ROOT = Path(__file__).resolve().parents[2]
RECORDINGS = ROOT / "recordings"
#: The web process reads runs itself: they are a few steps long. Anything larger is not one of ours.
_TRACE_BYTES_MAX = 100_000_000
#: About what a run needs on the disk.
_RUN_BYTES = 100_000
log = logging.getLogger("fusionscope")


@dataclass(frozen=True)
class Entry:
    """One run in the store. `recorded` says that it was shipped rather than made on this machine; `stamp` changes with
    the file."""

    path: Path
    manifest: Manifest
    recorded: bool
    stamp: str = ""


@dataclass
class Store:
    """Runs in `home`/runs, tables in `home`/tables, recordings read-only. Safe for several threads."""

    home: Path
    recordings: Path = RECORDINGS
    _known: dict[Path, tuple[str, Entry | None]] = field(default_factory=dict, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def entries(self) -> tuple[Entry, ...]:
        """Every readable run, newest first. Files that are not runs are passed over; see `unreadable`."""
        found = [entry for _, entry in self._scan().values() if entry]
        return tuple(sorted(found, key=lambda entry: entry.manifest.created, reverse=True))

    def unreadable(self) -> tuple[Path, ...]:
        """Files that carry a run's name and could not be read."""
        return tuple(path for path, (_, entry) in self._scan().items() if entry is None)

    def get(self, run_id: str) -> Entry | None:
        """The run of that id, None where there is none."""
        return next((entry for entry in self.entries() if entry.manifest.id == run_id), None)

    def check_writable(self, folder: Path | None = None) -> None:
        """Raises OSError where a run could not be kept, before it is measured."""
        folder = folder or self.home / "runs"
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(folder / ".writable", bytes(_RUN_BYTES))
        (folder / ".writable").unlink()

    def answers(self, workload: Workload, device: Device | None = None) -> tuple[Entry, ...]:
        """Runs that answer this very workload, the best first: this device before others, a GPU before a CPU, then the newest.

        Failed, throttled and unsettled runs are never among them.
        """
        fitting = [
            entry
            for entry in self.entries()
            if entry.manifest.workload == workload
            and entry.manifest.answers
            and entry.manifest.protocol.version == PROTOCOL
        ]
        return tuple(sorted(fitting, key=lambda entry: _rank(entry, device)))  # and the newest first, as they come

    def nearest(self, workload: Workload, *, limit: int = 3) -> tuple[Entry, ...]:
        """Runs most like the workload, the most alike first: same layer, then same backend, then close sizes."""
        candidates = [entry for entry in self.entries() if entry.manifest.answers]
        ordered = sorted(candidates, key=lambda entry: _distance(entry.manifest.workload, workload))
        return tuple({entry.manifest.workload: entry for entry in reversed(ordered)}.values())[::-1][:limit]

    def add(self, data: bytes, folder: Path | None = None) -> Entry:
        """Keeps a run file among the user's own, or in `folder`; an existing one is never overwritten.

        Raises runfile.RunFileError for what is not a run.
        """
        manifest = runfile.read_manifest(data)
        folder = folder or self.home / "runs"
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{safe_name(manifest.id)}{runfile.SUFFIX}"
        if not path.exists():
            write_whole(path, data)
        return Entry(path, manifest, recorded=False, stamp=_stamp(path) or "")

    def tables(self, entry: Entry) -> Tables | None:
        """The run's events as memory-mapped tables, made at the first look; None where the run has no trace.

        Raises TraceError where the trace inside cannot be read.
        """
        folder = self.home / "tables" / f"{safe_name(entry.manifest.id)}-{entry.stamp}"
        try:
            return open_tables(folder)
        except TraceError:
            trace = runfile.read_trace_bytes(entry.path)
        if trace is None:
            return None
        tables = read_trace(trace, limit_bytes=_TRACE_BYTES_MAX)
        try:
            write_tables(tables, folder)
            return open_tables(folder)
        except OSError:  # a full or read-only disk: the tables then live in memory, and are made anew the next time
            log.warning("the tables of %s cannot be kept", entry.manifest.id, exc_info=True)
            return tables

    def _scan(self) -> dict[Path, tuple[str, Entry | None]]:
        with self._lock:
            seen: dict[Path, tuple[str, Entry | None]] = {}
            for folder, recorded in ((self.home / "runs", False), (self.recordings, True)):
                for path in _run_files(folder):
                    stamp = _stamp(path)
                    if stamp is None:
                        continue
                    known = self._known.get(path)
                    seen[path] = known if known and known[0] == stamp else (stamp, _read(path, recorded, stamp))
            self._known = seen
            return dict(seen)


def default_home() -> Path:
    """Where this user's runs live: FUSIONSCOPE_HOME, else .fusionscope beside the code."""
    return Path(os.environ.get("FUSIONSCOPE_HOME") or ROOT / ".fusionscope")


def write_whole(path: Path, data: bytes) -> None:
    """Writes a file so that nobody ever sees half of it."""
    part = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}.part")
    try:
        part.write_bytes(data)
        part.replace(path)
    except OSError:
        part.unlink(missing_ok=True)
        raise


def safe_name(run_id: str) -> str:
    """A run's id as a file name of its own; ids come from manifests, which may be a stranger's."""
    plain = "".join(c if c.isascii() and (c.isalnum() or c in "-_") else "_" for c in run_id)[:100]
    return plain if plain == run_id else f"{plain}-{hashlib.sha256(run_id.encode()).hexdigest()[:12]}"


def _run_files(folder: Path) -> Iterable[Path]:
    return sorted(folder.glob(f"*{runfile.SUFFIX}")) if folder.is_dir() else ()


def _stamp(path: Path) -> str | None:
    """What changes with the file; None for what is gone or no file at all (a pipe would block whoever opens it)."""
    try:
        found = path.stat()
    except OSError:
        return None
    return f"{found.st_size}-{found.st_mtime_ns}" if stat.S_ISREG(found.st_mode) else None


def _read(path: Path, recorded: bool, stamp: str) -> Entry | None:
    """The run in a file, None where it is damaged or of a layer or backend that this version does not have."""
    try:
        manifest = runfile.read_manifest(path)
        known = make(to_fields(manifest.workload)) == manifest.workload
    except (runfile.RunFileError, WorkloadError):
        return None
    return Entry(path, manifest, recorded, stamp) if known else None


def _rank(entry: Entry, device: Device | None) -> tuple[bool, bool]:
    manifest = entry.manifest
    same_device = device is not None and manifest.device.name == device.name
    return (not same_device, manifest.device.kind != "gpu")


def _distance(a: Workload, b: Workload) -> tuple[bool, bool, bool, bool, float, bool]:
    other = dict(b.sizes)
    ratio = 0.0
    for name, size in a.sizes:
        if name in other:
            large, small = max(size, other[name]), max(1, min(size, other[name]))
            ratio += large / small
    return (
        a.layer != b.layer,
        a.backend != b.backend,
        a.passes != b.passes,
        a.dtype != b.dtype,
        ratio,
        a.steps != b.steps,
    )
