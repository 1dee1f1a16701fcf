"""The sweeps of a store: own and uploaded ones in folders of the user's home, and the shipped ones as a read-only layer.

A sweep is a folder: sweep.json, and one run file a point, each written as it finishes. Points are runs like others, found
by their id; what their process compiled before shaped them, so they answer no other question.
"""

from __future__ import annotations

import datetime
import functools
import hashlib
import os
import secrets
import shutil
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from core.store import runfile, sweepfile
from core.store.entry import Entry
from core.store.files import changed_ns, safe_name, stamp_of, write_whole
from core.store.head import head_of
from core.store.index import TICK_NS, TRUSTED_NS
from core.store.manifest import Manifest
from core.store.runfile import RunFileError
from core.store.spans import Span, moment_s, overlap, span_of, without_pauses
from core.store.sweepentry import SweepEntry, SweepError, conducting
from core.store.sweepfile import SweepHead
from core.sweep import Sweep
from core.sweep_order import point_id

SHIPPED = Path(__file__).resolve().parents[2] / "recordings" / "sweeps"
#: The web process reads runs itself: they are a few steps long, of 4 MB at most. Anything larger is not one of ours.
TRACE_BYTES_MAX = 30_000_000
#: A page looks at one sweep, or compares a few; each holds the manifests of up to a few thousand points.
_SWEEPS_REMEMBERED = 12
_HEADS_REMEMBERED = 1_000
_ENDS_REMEMBERED = 4_000


@dataclass(frozen=True)
class _Known:
    """What a point's file of that stamp holds for the sweep of that head: its manifest, or why it is none of the sweep's."""

    head: SweepHead
    stamp: str
    manifest: Manifest | None
    why: str | None = None


@dataclass(frozen=True)
class _Listing:
    """The stamps of the points in a folder, and for how long they need not be looked for again."""

    changed_ns: int | None
    trusted_until_ns: int
    stamps: dict[int, str]


@dataclass
class Sweeps:
    """Own sweeps in `own` (`home`/sweeps unless said), uploaded ones in `home`/sweep-uploads; recordings read-only.

    Safe for several threads, and for several servers on one home.
    """

    home: Path
    recordings: Path = SHIPPED
    own: Path | None = None
    _known: OrderedDict[Path, dict[int, _Known]] = field(default_factory=OrderedDict, init=False, repr=False)
    _listings: dict[Path, _Listing] = field(default_factory=dict, init=False, repr=False)
    _unreadable: dict[Path, str] = field(default_factory=dict, init=False, repr=False)
    _lock: threading.RLock = field(default_factory=threading.RLock, init=False, repr=False)

    @property
    def folders(self) -> tuple[tuple[str, Path], ...]:
        """Where sweeps lie, by origin."""
        return (
            ("live", self.own or self.home / "sweeps"),
            ("recorded", self.recordings),
            ("uploaded", self.home / "sweep-uploads"),
        )

    def entries(self) -> tuple[SweepEntry, ...]:
        """Every readable sweep, newest first. What cannot be read is passed over; see `problems`."""
        found = [entry for origin, folder in self.folders for entry in self._listed(origin, folder)]
        return tuple(sorted(found, key=lambda entry: entry.head.created, reverse=True))

    def get(self, sweep_id: str) -> SweepEntry | None:
        """The sweep of that id, None where there is none."""
        for origin, folder in self.folders:
            entry = self._entry(origin, folder / safe_name(sweep_id))
            if entry is not None:
                return entry
        return None

    def of(self, sweep: Sweep) -> tuple[SweepEntry, ...]:
        """Every sweep of this very kind, the best first: complete ones, then the newest."""
        found = [entry for entry in self.entries() if entry.head.sweep == sweep]
        return tuple(sorted(found, key=lambda entry: not entry.complete))

    def create(self, sweep: Sweep) -> SweepEntry:
        """Begins a sweep: its folder, with no point yet. Raises OSError where it cannot be kept."""
        now = datetime.datetime.now(datetime.UTC)
        sweep_id = f"{sweep.base.layer}-{sweep.kind}-{sweep.key}-{now:%Y%m%d%H%M%S}{secrets.token_hex(2)}"
        head = SweepHead(sweep_id, sweep, now.isoformat(timespec="seconds"))
        folder = self.folders[0][1] / sweep_id
        folder.mkdir(parents=True)
        try:
            write_whole(folder / sweepfile.HEAD, sweepfile.encode(head))
        except OSError:
            folder.rmdir()
            raise
        return SweepEntry(head, folder, "live", frozenset(), _stamp({}, sweepfile.HEAD))

    def add(self, sweep_id: str, order: int, data: bytes) -> None:
        """Keeps a point's run file. Raises RunFileError for what is not that point, SweepError where the sweep is gone or
        not this user's own, and OSError where the disk refuses."""
        entry = self.get(sweep_id)
        if entry is None or entry.origin != "live":
            raise SweepError(f"The sweep {sweep_id[:80]} is not here any more, so its points cannot be kept.")
        problem = sweepfile.point_problem(entry.head, order, runfile.read_manifest(data))
        if problem:
            raise RunFileError(problem)
        write_whole(entry.folder / sweepfile.name_of(order), data)

    def manifests(self, entry: SweepEntry) -> tuple[Manifest, ...]:
        """The manifests of the points that are there, in the plan's order, read once a file and remembered.

        A damaged file, or one that is not its point, is left out and named in `problems`.
        """
        found = self._read(entry)
        return tuple(known.manifest for known in found.values() if known.manifest is not None)

    def spans_beside(self, entry: SweepEntry) -> tuple[Span, ...]:
        """When the other sweeps of the same origin were measured on a device of the same name, without the pauses in which
        they were left alone; () for an uploaded one, for nobody knows on which machine. Of a sweep that was measured at
        another time two points are read, once."""
        own = self._whole_span(entry)
        if own is None or entry.origin == "uploaded":
            return ()
        found: list[Span] = []
        for one in self.entries():
            other = self._whole_span(one) if one.origin == entry.origin and one.head != entry.head else None
            if other is not None and other[0] == own[0] and overlap(other[1], own[1]):
                found += self._spans(one)
        return tuple(found)

    def run(self, run_id: str) -> Entry | None:
        """A point as a run like others, by its id; None where there is none."""
        sweep_id, _, number = run_id.rpartition("-")
        if not (sweep_id and number.isascii() and number.isdecimal()):
            return None
        entry = self.get(sweep_id)
        order = int(number)
        if entry is None or run_id != point_id(sweep_id, order):
            return None
        known = self._read(entry).get(order)
        if known is None or known.manifest is None:
            return None
        return Entry(entry.folder / sweepfile.name_of(order), head_of(known.manifest), entry.origin, known.stamp)

    def delete(self, sweep_id: str) -> None:
        """Removes an own or uploaded sweep with its points' tables.

        Raises SweepError, one sentence, where it is shipped, gone, or just being measured; OSError where the disk refuses.
        """
        entry = self.get(sweep_id)
        if entry is None:
            raise SweepError("This sweep was gone already; reload the page.")
        if entry.recorded:
            raise SweepError("Shipped recordings stay.")
        with conducting(entry):
            # First out of sight, then away: half a sweep is never listed.
            gone = entry.folder.with_name(f".{entry.folder.name}.{secrets.token_hex(4)}.deleted")
            entry.folder.rename(gone)
        shutil.rmtree(gone, ignore_errors=True)
        for folder in (self.home / "tables").glob(f"{safe_name(sweep_id)}-*"):
            shutil.rmtree(folder, ignore_errors=True)
        with self._lock:
            self._known.pop(entry.folder, None)
            self._listings.pop(entry.folder, None)

    def export(self, entry: SweepEntry) -> bytes:
        """The sweep as one zip, of its readable points. Raises RunFileError where a file has gone meanwhile."""
        found = self._read(entry)
        points: dict[int, bytes] = {}
        for order, known in found.items():
            if known.manifest is not None:
                try:
                    points[order] = (entry.folder / sweepfile.name_of(order)).read_bytes()
                except OSError as error:
                    raise RunFileError("The sweep has changed meanwhile; reload the page and try again.") from error
        return sweepfile.pack(entry.head, points)

    def upload(self, data: bytes, say: Callable[[int, int], None] | None = None) -> SweepEntry:
        """Keeps a sweep that was measured elsewhere; the entry that is already there where it holds the same points.

        `say(done, total)` is told how many points were looked at. Raises RunFileError, one sentence, for what is no sweep
        that can be shown here, and OSError for a full disk.
        """
        head, points = sweepfile.unpack(data, trace_bytes_max=TRACE_BYTES_MAX, say=say)
        known = self.get(head.id)
        if known is not None:
            same = all(_holds(known.folder / sweepfile.name_of(order), own) for order, own in points.items())
            if known.head != head or not same:
                raise RunFileError(
                    "A sweep of this name is already here, with other points; it is left as it is. Delete it first to "
                    "replace it."
                )
            return known
        folder = self.home / "sweep-uploads" / safe_name(head.id)
        if folder.exists():
            raise RunFileError(
                f"A folder of this name is already here, and its {sweepfile.HEAD} cannot be read; it is left as it is. "
                "Update FusionScope, or move the folder away, then upload again."
            )
        part = folder.with_name(f".{folder.name}.{secrets.token_hex(4)}.part")
        part.mkdir(parents=True)
        try:
            for order, own in points.items():
                (part / sweepfile.name_of(order)).write_bytes(own)
            (part / sweepfile.HEAD).write_bytes(sweepfile.encode(head))
            part.rename(folder)
        except OSError:
            shutil.rmtree(part, ignore_errors=True)
            raise
        entry = self._entry("uploaded", folder)
        assert entry is not None, "it was just written"
        return entry

    def problems(self) -> dict[Path, str]:
        """Why files are none of the sweeps or points, in one sentence each: of every sweep's head, and of the points of those
        sweeps that were looked at so far."""
        self.entries()
        with self._lock:
            of_points = {
                folder / sweepfile.name_of(order): known.why
                for folder, found in self._known.items()
                for order, known in found.items()
                if known.why is not None
            }
            return {**self._unreadable, **of_points}

    def _listed(self, origin: str, folder: Path) -> Iterator[SweepEntry]:
        try:
            with os.scandir(folder) as items:
                names = [item.name for item in items if item.name[0] != "." and item.is_dir()]
        except OSError:  # nothing was kept there so far
            return
        for name in sorted(names):
            entry = self._entry(origin, folder / name)
            if entry is not None:
                yield entry

    def _entry(self, origin: str, folder: Path) -> SweepEntry | None:
        head_path = folder / sweepfile.HEAD
        stamp = stamp_of(head_path)
        head, why = _head(folder, stamp) if stamp is not None else (None, None)
        with self._lock:
            if why is not None:
                self._unreadable[head_path] = why
            else:
                self._unreadable.pop(head_path, None)
            if head is None:
                return None
            stamps = self._stamps(folder)
            known = self._known.get(folder, {})
            # What was found to be no point is still to be measured.
            now = {order: one for order, one in known.items() if (one.head, one.stamp) == (head, stamps.get(order))}
            bad = {order for order, one in now.items() if one.why is not None}
        return SweepEntry(head, folder, origin, frozenset(stamps) - bad, _stamp(stamps, stamp or ""))

    def _whole_span(self, entry: SweepEntry) -> tuple[str, Span] | None:
        """On what device a sweep was measured, and from when until when; None where no point tells."""
        orders = sorted(entry.done)
        first, last = (next(self._told(entry, way), None) for way in (orders, orders[::-1]))
        begun_s = moment_s(entry.head.created)  # before its first point its process imports torch
        return (first[0], (min(first[1][0], begun_s), last[1][1])) if first and last else None

    def _spans(self, entry: SweepEntry) -> tuple[Span, ...]:
        begun_s = moment_s(entry.head.created)
        found = without_pauses([(begun_s, begun_s), *(span for _, span in self._told(entry, sorted(entry.done)))])
        return tuple((start, end) for start, end in found if start < end)

    def _told(self, entry: SweepEntry, orders: Sequence[int]) -> Iterator[tuple[str, Span]]:
        """On what device, and when, each of these points was measured, where its file tells."""
        with self._lock:
            stamps = self._stamps(entry.folder)
        known = (_measured(entry.folder, entry.head, order, stamps[order]) for order in orders if order in stamps)
        return filter(None, known)

    def _stamps(self, folder: Path) -> dict[int, str]:
        """The stamps of the points' files. Points come by rename, which changes their folder: one that stays as it is is not
        looked through again for a moment. What somebody rewrites in place is seen after it."""
        changed, now = changed_ns(folder), time.monotonic_ns()
        found = self._listings.get(folder)
        if found is not None and found.changed_ns == changed and now < found.trusted_until_ns:
            return found.stamps
        settled = changed is not None and time.time_ns() - changed > TICK_NS
        stamps = sweepfile.points_in(folder)
        self._listings[folder] = _Listing(changed, now + TRUSTED_NS if settled else now, stamps)
        return stamps

    def _read(self, entry: SweepEntry) -> dict[int, _Known]:
        """What each point's file holds, by its place in the plan; files that did not change are not read again."""
        with self._lock:
            before = self._known.pop(entry.folder, {})
            now: dict[int, _Known] = {}
            for order, stamp in sweepfile.points_in(entry.folder).items():
                known = before.get(order)
                same = known is not None and (known.head, known.stamp) == (entry.head, stamp)
                now[order] = known if known and same else _read_point(entry.folder, entry.head, order, stamp)
            self._known[entry.folder] = now
            while len(self._known) > _SWEEPS_REMEMBERED:
                self._known.popitem(last=False)
            return now


@functools.lru_cache(maxsize=_HEADS_REMEMBERED)
def _head(folder: Path, stamp: str) -> tuple[SweepHead | None, str | None]:
    """The head in a folder, or why there is none; of that stamp, so that a replaced file is read again."""
    try:
        head = sweepfile.read_head(folder)
    except RunFileError as error:
        return None, str(error)
    if folder.name != safe_name(head.id):
        return None, f"The sweep in this folder is {head.id}; give the folder its name back."
    return head, None


def _read_point(folder: Path, head: SweepHead, order: int, stamp: str) -> _Known:
    try:
        manifest = runfile.read_manifest(folder / sweepfile.name_of(order))
    except RunFileError as error:
        # What the disk refuses today it may give tomorrow, with the same stamp: no stamp, so that it is read again.
        return _Known(head, "" if isinstance(error.__cause__, OSError) else stamp, None, str(error))
    why = sweepfile.point_problem(head, order, manifest)
    return _Known(head, stamp, None if why else manifest, why)


@functools.lru_cache(maxsize=_ENDS_REMEMBERED)
def _measured(folder: Path, head: SweepHead, order: int, stamp: str) -> tuple[str, Span] | None:
    """On what device a point was measured, and when; None where its file does not tell."""
    found = _read_point(folder, head, order, stamp).manifest
    return None if found is None or found.device.kind == "unknown" else (found.device.name, span_of(found, found))


def _stamp(points: dict[int, str], head: str) -> str:
    return hashlib.sha256(f"{head}{sorted(points.items())}".encode()).hexdigest()[:16]


def _holds(path: Path, data: bytes) -> bool:
    try:
        return path.read_bytes() == data
    except OSError:
        return False
