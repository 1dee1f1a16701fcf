"""What an uploaded file must be before it is kept: a whole run, of this version, with a trace that opens."""

from __future__ import annotations

import io
import zipfile

from core.store import runfile
from core.store.manifest import Manifest
from core.store.possible import impossible
from core.store.runfile import RunFileError
from core.trace import TraceError, read_trace
from core.workload import Workload, WorkloadError, make, to_fields

#: Unpacked, far above what any run holds: beyond it, a file only means to fill the memory.
_UNPACKED_BYTES_MAX = 100_000_000
_MEMBERS_MAX = 2_000


def checked(data: bytes, *, trace_bytes_max: int) -> Manifest:
    """The manifest of a run file that may be kept; `trace_bytes_max` bounds the text of its trace.

    Raises RunFileError, one sentence, for what is no run, a run that this version cannot show, or a damaged one.
    """
    if not zipfile.is_zipfile(io.BytesIO(data)):
        raise RunFileError(_no_zip(data))
    with runfile.opened(data) as archive:
        members = archive.infolist()
    if any(member.filename == "sweep.json" for member in members):
        raise RunFileError("This zip is a sweep rather than a run; upload it on the page Shapes.")
    if any(member.filename.endswith(runfile.SUFFIX) for member in members):
        raise RunFileError("This zip holds run files rather than a run; unpack it and upload the files inside.")
    if len(members) > _MEMBERS_MAX or sum(member.file_size for member in members) > _UNPACKED_BYTES_MAX:
        raise RunFileError("The file is far larger than any run's when unpacked; that is no run of FusionScope.")
    manifest = runfile.read_manifest(data)
    problem = unknown_here(manifest.workload) or impossible(manifest)
    if problem:
        raise RunFileError(problem)
    runfile.read_code(data)
    trace = runfile.read_trace_bytes(data)
    if trace is not None:
        try:
            read_trace(trace, limit_bytes=trace_bytes_max)
        except TraceError as error:
            raise RunFileError(f"The trace inside the run cannot be read. {error}") from error
    return manifest


def unknown_here(workload: Workload) -> str | None:
    """Why a workload is none of this version's, in one sentence; None where it is one."""
    try:
        known = make(to_fields(workload)) == workload
    except WorkloadError as error:
        return f"This FusionScope does not have what the run is of ({error}); update it."
    return None if known else "The run's sizes are not those of its layer in this FusionScope; update it."


def _no_zip(data: bytes) -> str:
    if data.startswith(b"\x1f\x8b") or data.lstrip()[:1] in (b"{", b"["):
        return (
            "This is a bare trace, which names no workload and holds no measurements beside it; upload a run file, "
            "or read the trace with: python -m core summary FILE"
        )
    return "The file is not a run (a zip with a manifest) or is damaged; fetch or record it again."
