"""The store: the user's own runs and uploads, and under them the shipped recordings as a read-only layer.

A run is found by its workload first, then the best of several is chosen by device and age. All of that works from the
heads that the index holds; a run file is opened only when its run is shown.
"""

from __future__ import annotations

import logging
import os
import shutil
import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from core.store import runfile, uploads
from core.store.entry import Entry
from core.store.files import safe_name, stamp_of, write_whole
from core.store.head import head_of
from core.store.index import Index, Snapshot
from core.store.manifest import PROTOCOL, Device
from core.store.sweeps import TRACE_BYTES_MAX, Sweeps
from core.trace import Tables, TraceError, open_tables, read_trace, write_tables
from core.workload import Workload

ROOT = Path(__file__).resolve().parents[2]
RECORDINGS = ROOT / "recordings"
#: About what a run needs on the disk.
_RUN_BYTES = 100_000
log = logging.getLogger("fusionscope")


class StoreError(ValueError):
    """What the store will not do; the text is one sentence."""


@dataclass(frozen=True)
class Deletion:
    """What became of runs that were to be deleted, by id: those gone, and why the others are still there."""

    deleted: tuple[str, ...]
    left: dict[str, str]


@dataclass
class Store:
    """Own runs in `home`/runs, uploaded ones in `home`/uploads, a mark for each kept run in `home`/kept, tables in
    `home`/tables; recordings read-only. `sweeps` are those of the same home and recordings.

    Safe for several threads, and for several servers on one home.
    """

    home: Path
    recordings: Path = RECORDINGS
    sweeps: Sweeps = field(init=False, repr=False)
    _index: Index = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.sweeps = Sweeps(self.home, self.recordings / "sweeps")
        self._index = Index(
            file=self.home / "index.json",
            folders=(
                ("live", self.home / "runs"),
                ("recorded", self.recordings),
                ("uploaded", self.home / "uploads"),
            ),
            kept=self.home / "kept",
        )

    def snapshot(self) -> Snapshot:
        """All runs as they are now; the same object while nothing changed."""
        return self._index.snapshot()

    def entries(self) -> tuple[Entry, ...]:
        """Every readable run, newest first. Files that are not runs are passed over; see `problems`."""
        return self.snapshot().entries

    def problems(self) -> dict[Path, str]:
        """Why each of the unreadable files is none of the runs, in one sentence."""
        return self.snapshot().problems

    def get(self, run_id: str) -> Entry | None:
        """The run of that id, also where it is a point of a sweep; None where there is none."""
        found = self.snapshot().by_id.get(run_id)
        return found[0] if found else self.sweeps.run(run_id)

    def of(self, workload: Workload) -> tuple[Entry, ...]:
        """Every run of this very workload, newest first, failed ones too; no points of sweeps."""
        return self.snapshot().by_workload.get(workload, ())

    def check_writable(self, folder: Path | None = None) -> None:
        """Raises OSError where a run could not be kept, before it is measured."""
        folder = folder or self.home / "runs"
        folder.mkdir(parents=True, exist_ok=True)
        trial = folder / f".writable.{os.getpid()}.{threading.get_ident()}"
        write_whole(trial, bytes(_RUN_BYTES))
        trial.unlink(missing_ok=True)

    def answers(self, workload: Workload, device: Device | None = None) -> tuple[Entry, ...]:
        """Runs that answer this very workload, the best first: this device before others, a GPU before a CPU, then the newest.

        Failed, throttled and unsettled runs are never among them.
        """
        fitting = [
            entry for entry in self.of(workload) if entry.head.answers and entry.head.protocol_version == PROTOCOL
        ]
        return tuple(sorted(fitting, key=lambda entry: _rank(entry, device)))  # and the newest first, as they come

    def nearest(self, workload: Workload, *, limit: int = 3) -> tuple[Entry, ...]:
        """Runs most like the workload, the most alike first: same layer, then same backend, then close sizes; the newest
        one of each workload."""
        newest = [
            next((entry for entry in found if entry.head.answers), None)
            for found in self.snapshot().by_workload.values()
        ]
        candidates = [entry for entry in newest if entry is not None]
        return tuple(sorted(candidates, key=lambda entry: _distance(entry.head.workload, workload))[:limit])

    def add(self, data: bytes, folder: Path | None = None) -> Entry:
        """Keeps a run file among the user's own, or in `folder`; an existing one is never overwritten.

        Raises runfile.RunFileError for what is not a run.
        """
        head = head_of(runfile.read_manifest(data))
        folder = folder or self.home / "runs"
        folder.mkdir(parents=True, exist_ok=True)
        path = _path_for(head.id, folder)
        if not path.exists():
            write_whole(path, data)
        self._index.changed()
        return Entry(path, head, "live", stamp_of(path) or "")

    def upload(self, data: bytes) -> Entry:
        """Keeps a run file that was measured elsewhere; the entry that is already there where its id is known.

        Raises runfile.RunFileError, one sentence, for what is no run that can be shown here, and OSError for a full disk.
        """
        head = head_of(uploads.checked(data, trace_bytes_max=TRACE_BYTES_MAX))
        known = self.get(head.id)
        if known is not None:
            if known.path.read_bytes() != data:
                raise runfile.RunFileError(
                    "A run of this name is already here, with other content; it is left as it is. Delete it first to replace it."
                )
            return known
        folder = self.home / "uploads"
        folder.mkdir(parents=True, exist_ok=True)
        path = _path_for(head.id, folder)
        write_whole(path, data)  # what may lie there is no readable run
        self._index.changed()
        return Entry(path, head, "uploaded", stamp_of(path) or "")

    def keep(self, run_id: str, on: bool) -> None:
        """Keeps a run from being deleted, or releases it. Raises StoreError where there is nothing to keep."""
        found = self.snapshot().by_id.get(run_id, ())
        if not found:
            raise StoreError(f"The run {run_id[:80]} is not here any more; reload the page.")
        if all(entry.recorded for entry in found):
            raise StoreError("Shipped recordings need no keeping: they cannot be deleted.")
        mark = self.home / "kept" / safe_name(run_id)
        if on:
            mark.parent.mkdir(parents=True, exist_ok=True)
            mark.touch()
        else:
            mark.unlink(missing_ok=True)
        self._index.changed()

    def delete(self, run_ids: Iterable[str]) -> Deletion:
        """Removes own and uploaded runs with their tables; recordings and kept runs stay, and are named with the reason."""
        by_id = self.snapshot().by_id
        deleted: list[str] = []
        left: dict[str, str] = {}
        for run_id in dict.fromkeys(run_ids):
            found = by_id.get(run_id, ())
            stays = [entry.stays_why for entry in found if entry.stays_why] if found else ["It was gone already."]
            removable = [entry for entry in found if not entry.stays_why]
            try:
                for entry in removable:
                    entry.path.unlink(missing_ok=True)
                    shutil.rmtree(self._tables_folder(entry), ignore_errors=True)
            except OSError as error:
                stays.append(f"The disk refused: {error.strerror}.")
            if stays:
                left[run_id] = stays[0]
            else:
                deleted.append(run_id)
        self._index.changed()
        return Deletion(tuple(deleted), left)

    def tables(self, entry: Entry) -> Tables | None:
        """The run's events as memory-mapped tables, made at the first look; None where the run has no trace.

        Raises TraceError where the trace inside cannot be read.
        """
        folder = self._tables_folder(entry)
        try:
            return open_tables(folder)
        except TraceError:
            trace = runfile.read_trace_bytes(entry.path)
        if trace is None:
            return None
        tables = read_trace(trace, limit_bytes=TRACE_BYTES_MAX)
        try:
            write_tables(tables, folder)
            return open_tables(folder)
        except OSError:  # a full or read-only disk: the tables then live in memory, and are made anew the next time
            log.warning("the tables of %s cannot be kept", entry.head.id, exc_info=True)
            return tables

    def _tables_folder(self, entry: Entry) -> Path:
        return self.home / "tables" / f"{safe_name(entry.head.id)}-{entry.stamp}"


def default_home() -> Path:
    """Where this user's runs live: FUSIONSCOPE_HOME, else .fusionscope beside the code."""
    return Path(os.environ.get("FUSIONSCOPE_HOME") or ROOT / ".fusionscope")


def _path_for(run_id: str, folder: Path) -> Path:
    return folder / f"{safe_name(run_id)}{runfile.SUFFIX}"


def _rank(entry: Entry, device: Device | None) -> tuple[bool, bool]:
    found = entry.head.device
    same_device = device is not None and found.name == device.name
    return (not same_device, found.kind != "gpu")


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
