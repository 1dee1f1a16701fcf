"""A sweep's files: sweep.json beside one run file a point, in a folder or in one zip; read, packed and checked.

`0007.run.zip` holds the point whose place in the plan is 7. The folder of a store, the shipped recordings, a download and
an upload are all that same set of files.
"""

from __future__ import annotations

import functools
import io
import re
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from core.store import runfile, uploads
from core.store.files import files_in
from core.store.manifest import Manifest
from core.store.possible import impossible, is_date
from core.store.runfile import RunFileError
from core.sweep import Sweep, Task, make_sweep, plan, to_sweep_fields, workload_at
from core.sweep_order import point_id
from core.workload import WorkloadError

FORMAT = 1
HEAD = "sweep.json"
_HEAD_BYTES_MAX = 1_000_000
#: Unpacked, far above what any sweep holds: beyond it, a file only means to fill the memory.
_UNPACKED_BYTES_MAX = 1_000_000_000
_NAME = re.compile(r"([0-9]{4})" + re.escape(runfile.SUFFIX))
_ID = re.compile(r"[A-Za-z0-9_-]{1,100}")


@dataclass(frozen=True)
class SweepHead:
    """What sweep.json says: the sweep's id, what it sweeps, and when it was begun (ISO 8601, UTC)."""

    id: str
    sweep: Sweep
    created: str
    format: int = FORMAT


@functools.lru_cache(maxsize=16)
def tasks_of(sweep: Sweep) -> tuple[Task, ...]:
    """The sweep's plan, remembered: every point is held against it."""
    return plan(sweep)


def name_of(order: int) -> str:
    """The file name of a point."""
    return f"{order:04d}{runfile.SUFFIX}"


def order_of(name: str) -> int | None:
    """Which point of the plan a file of that name holds; None where it is no point's."""
    found = _NAME.fullmatch(name)
    return int(found[1]) if found else None


def encode(head: SweepHead) -> bytes:
    """sweep.json."""
    return msgspec.json.encode(head)


def decode(data: bytes) -> SweepHead:
    """The head from sweep.json. Raises RunFileError, one sentence, for what is none or none of this version."""
    try:
        found: Any = msgspec.json.decode(data)
        version = found.get("format") if isinstance(found, dict) else None
        if isinstance(version, int) and version > FORMAT:
            raise RunFileError(
                f"This sweep was written in format {version}; this FusionScope reads up to {FORMAT}: update it."
            )
        head = msgspec.json.decode(data, type=SweepHead)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise RunFileError(
            f"{HEAD} cannot be read ({str(error)[:120]}); the file is damaged or not a sweep."
        ) from error
    if not _ID.fullmatch(head.id) or not is_date(head.created):
        raise RunFileError(f"The sweep's name or date in {HEAD} is none that FusionScope gives; the file was edited.")
    try:
        known = make_sweep(to_sweep_fields(head.sweep)) == head.sweep
    except (WorkloadError, KeyError, IndexError, ValueError) as error:
        # Values of the right type that no sweep has: another count of sizes than of axes, an axis that is none.
        raise RunFileError(f"This FusionScope does not have what the sweep is of ({error}); update it.") from error
    if not known:
        raise RunFileError("The sweep's sizes are not those of its layer in this FusionScope; update it.")
    return head


def point_problem(head: SweepHead, order: int, manifest: Manifest) -> str | None:
    """Why a run is not the point of that order in this sweep, in one sentence; None where it is."""
    tasks = tasks_of(head.sweep)
    if order >= len(tasks):
        return f"The sweep has {len(tasks)} points, and {name_of(order)} is none of them; the file was renamed."
    task, point = tasks[order], manifest.point
    told = (point.sweep, point.order, point.process, point.index, point.round, point.values) if point else None
    values = head.sweep.points[task.index]
    if told != (head.id, order, task.process, task.index, task.round, values):
        return f"The run in {name_of(order)} is not that point of this sweep; the file was renamed or edited."
    if manifest.id != point_id(head.id, order) or manifest.workload != workload_at(
        head.sweep, task.backend, task.index
    ):
        return f"The run in {name_of(order)} is of another workload than the sweep's; the file was edited."
    problem = impossible(manifest)
    return f"{name_of(order)}: {problem}" if problem else None


def pack(head: SweepHead, points: Mapping[int, bytes]) -> bytes:
    """The sweep as one zip, the same bytes whenever it is packed; run files are zips already and are stored as they are."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(_member(HEAD), encode(head))
        for order in sorted(points):
            archive.writestr(_member(name_of(order)), points[order])
    return buffer.getvalue()


def _member(name: str) -> zipfile.ZipInfo:
    found = zipfile.ZipInfo(name)  # of 1980: the moment of packing is nothing of the sweep's
    found.external_attr = 0o644 << 16
    return found


def unpack(
    source: Path | bytes, *, trace_bytes_max: int, say: Callable[[int, int], None] | None = None
) -> tuple[SweepHead, dict[int, bytes]]:
    """A sweep's zip, everything in it checked as an upload is: its head, and its run files by their place in the plan.

    `say(done, total)` is told how many run files were looked at. Raises RunFileError, one sentence.
    """
    if isinstance(source, bytes) and not zipfile.is_zipfile(io.BytesIO(source)):
        raise RunFileError("The file is not a sweep (a zip with a sweep.json) or is damaged; fetch or export it again.")
    with runfile.opened(source) as archive:
        _check_members(archive.infolist())
        head = decode(_read(archive, HEAD))
        orders = sorted(order for name in archive.namelist() if (order := order_of(name)) is not None)
        points: dict[int, bytes] = {}
        for at, order in enumerate(orders):
            if say is not None:
                say(at, len(orders))
            points[order] = _checked_point(head, order, _read(archive, name_of(order)), trace_bytes_max)
    return head, points


def _check_members(members: Sequence[zipfile.ZipInfo]) -> None:
    names = [member.filename for member in members]
    if HEAD not in names:
        raise RunFileError(
            "The zip holds a single run rather than a sweep; upload it on the page Runs."
            if runfile.MANIFEST in names
            else f"The zip holds no {HEAD}, so it is not a sweep of FusionScope."
        )
    strange = next((name for name in names if name != HEAD and order_of(name) is None), None)
    if strange is not None:
        raise RunFileError(f"The zip holds {strange[:60]!r}, which is no part of a sweep; export the sweep again.")
    if len(set(names)) != len(names):
        raise RunFileError("The zip holds two files of one name, as no sweep of FusionScope does; export it again.")
    head_bytes = next(member.file_size for member in members if member.filename == HEAD)
    if head_bytes > _HEAD_BYTES_MAX or sum(member.file_size for member in members) > _UNPACKED_BYTES_MAX:
        raise RunFileError("The file is far larger than any sweep's when unpacked; that is no sweep of FusionScope.")


def _checked_point(head: SweepHead, order: int, data: bytes, trace_bytes_max: int) -> bytes:
    try:
        manifest = uploads.checked(data, trace_bytes_max=trace_bytes_max)
    except RunFileError as error:
        raise RunFileError(f"{name_of(order)} in the sweep cannot be taken. {error}") from error
    problem = point_problem(head, order, manifest)
    if problem:
        raise RunFileError(problem)
    return data


def _read(archive: zipfile.ZipFile, name: str) -> bytes:
    try:
        return archive.read(name)
    except runfile.DAMAGE as error:
        raise RunFileError(f"{name} in the sweep is damaged; fetch or export it again.") from error


def is_sweep(path: Path) -> bool:
    """Whether a folder or a zip is a sweep's, by the head in it."""
    if path.is_dir():
        return (path / HEAD).is_file()
    if not path.is_file() or not zipfile.is_zipfile(path):
        return False
    with runfile.opened(path) as archive:
        return HEAD in archive.namelist()


def read_head(folder: Path) -> SweepHead:
    """The head of a sweep's folder. Raises RunFileError."""
    path = folder / HEAD
    try:
        if path.stat().st_size > _HEAD_BYTES_MAX:
            raise RunFileError(f"{HEAD} is far larger than any sweep's; that is none of FusionScope.")
        return decode(path.read_bytes())
    except OSError as error:
        raise RunFileError(f"{HEAD} cannot be read ({error.strerror}); check the folder.") from error


def points_in(folder: Path) -> dict[int, str]:
    """The stamps of the points' files in a sweep's folder, by their place in the plan; files of other names are passed over."""
    found = {order: stamp for name, stamp in files_in(folder) if (order := order_of(name)) is not None}
    return dict(sorted(found.items()))
