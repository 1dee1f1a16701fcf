"""The store: the user's own runs, and under them the shipped recordings as a read-only layer.

A run is found by its workload first, then the best of several is chosen by device, versions and age. The index is a
memory of manifests that were read; it is rebuilt from the files whenever they change.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from core.store import runfile
from core.store.manifest import PROTOCOL, Device, Manifest
from core.trace import Tables, TraceError, open_tables, read_trace, write_tables
from core.workload import Workload

ROOT = Path(__file__).resolve().parents[2]
RECORDINGS = ROOT / "recordings"


@dataclass(frozen=True)
class Entry:
    """One run in the store. `recorded` says that it was shipped rather than made on this machine."""

    path: Path
    manifest: Manifest
    recorded: bool


@dataclass
class Store:
    """Runs in `home`/runs, tables in `home`/tables, recordings read-only. Safe for several threads."""

    home: Path
    recordings: Path = RECORDINGS
    _known: dict[Path, tuple[int, int, Entry | None]] = field(default_factory=dict, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def entries(self) -> tuple[Entry, ...]:
        """Every readable run, newest first. Files that are not runs are passed over; see `unreadable`."""
        found = [entry for _, _, entry in self._scan().values() if entry]
        return tuple(sorted(found, key=lambda entry: entry.manifest.created, reverse=True))

    def unreadable(self) -> tuple[Path, ...]:
        """Files that carry a run's name and could not be read."""
        return tuple(path for path, (_, _, entry) in self._scan().items() if entry is None)

    def get(self, run_id: str) -> Entry | None:
        """The run of that id, None where there is none."""
        return next((entry for entry in self.entries() if entry.manifest.id == run_id), None)

    def answers(self, workload: Workload, device: Device | None = None) -> tuple[Entry, ...]:
        """Runs that answer this very workload, the best first: this device before others, then the newest versions.

        Failed, throttled and unsettled runs are never among them.
        """
        fitting = [
            entry
            for entry in self.entries()
            if entry.manifest.workload == workload
            and entry.manifest.answers
            and entry.manifest.protocol.version == PROTOCOL
        ]
        return tuple(sorted(fitting, key=lambda entry: _rank(entry, device)))

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
        return Entry(path, manifest, recorded=False)

    def tables(self, entry: Entry) -> Tables | None:
        """The run's events as memory-mapped tables, made at the first look; None where the run has no trace.

        Raises TraceError where the trace inside cannot be read.
        """
        stat = entry.path.stat()
        folder = self.home / "tables" / f"{safe_name(entry.manifest.id)}-{stat.st_size}-{stat.st_mtime_ns}"
        try:
            return open_tables(folder)
        except TraceError:
            trace = runfile.read_trace_bytes(entry.path)
        if trace is None:
            return None
        write_tables(read_trace(trace), folder)
        return open_tables(folder)

    def _scan(self) -> dict[Path, tuple[int, int, Entry | None]]:
        with self._lock:
            seen: dict[Path, tuple[int, int, Entry | None]] = {}
            for folder, recorded in ((self.home / "runs", False), (self.recordings, True)):
                for path in _run_files(folder):
                    stat = path.stat()
                    known = self._known.get(path)
                    if known is None or known[:2] != (stat.st_size, stat.st_mtime_ns):
                        known = (stat.st_size, stat.st_mtime_ns, _read(path, recorded))
                    seen[path] = known
            self._known = seen
            return dict(seen)


def default_home() -> Path:
    """Where this user's runs live: FUSIONSCOPE_HOME, else .fusionscope beside the code."""
    return Path(os.environ.get("FUSIONSCOPE_HOME") or ROOT / ".fusionscope")


def write_whole(path: Path, data: bytes) -> None:
    """Writes a file so that nobody ever sees half of it."""
    part = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}.part")
    part.write_bytes(data)
    part.replace(path)


def safe_name(run_id: str) -> str:
    """A run's id as a file name; ids come from manifests, which may be a stranger's."""
    return "".join(c if c.isalnum() or c in "-_" else "_" for c in run_id)[:120]


def _run_files(folder: Path) -> Iterable[Path]:
    return sorted(folder.glob(f"*{runfile.SUFFIX}")) if folder.is_dir() else ()


def _read(path: Path, recorded: bool) -> Entry | None:
    try:
        return Entry(path, runfile.read_manifest(path), recorded)
    except runfile.RunFileError:
        return None


def _rank(entry: Entry, device: Device | None) -> tuple[bool, bool, float]:
    manifest = entry.manifest
    same_device = device is not None and manifest.device.name == device.name
    stamp = float("".join(c for c in manifest.created if c.isdigit())[:14] or 0)
    return (not same_device, manifest.device.kind != "gpu", -stamp)


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
