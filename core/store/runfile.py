"""The run file: one zip that holds a manifest, the Chrome trace and the generated code of one run.

The cache, the shipped recordings, a download and what a worker sends back are all this same file.
"""

from __future__ import annotations

import io
import lzma
import struct
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path

from core.store import manifest as manifests
from core.store.manifest import Manifest

SUFFIX = ".run.zip"
MANIFEST = "manifest.json"
_TRACE = "trace.json.gz"
_CODE = "code/"
#: Far above what any run holds: beyond it, a file only means to fill the memory.
_BYTES_MAX = {MANIFEST: 20_000_000, _TRACE: 500_000_000}
_CODE_BYTES_MAX = 2_000_000
#: What zipfile raises on damaged input: beside its own error, whatever the damaged field leads it into.
DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    MemoryError,
    OSError,
    EOFError,
    ValueError,
    NotImplementedError,
    RuntimeError,
    struct.error,
)


class RunFileError(ValueError):
    """A file that is not a run; the text is one sentence that says what is wrong and what to do."""


def pack(manifest: Manifest, trace: bytes | None, code: Mapping[str, str]) -> bytes:
    """The run file as bytes. `trace` is gzipped JSON; `code` maps file names to sources."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(MANIFEST, manifests.encode(manifest))
        if trace is not None:
            archive.writestr(zipfile.ZipInfo(_TRACE), trace, compress_type=zipfile.ZIP_STORED)
        for name, source in code.items():
            archive.writestr(_CODE + name, source)
    return buffer.getvalue()


def read_manifest(source: Path | bytes) -> Manifest:
    """The manifest alone. Raises RunFileError."""
    try:
        return manifests.decode(_member(source, MANIFEST))
    except manifests.ManifestError as error:
        raise RunFileError(str(error)) from error


def read_trace_bytes(source: Path | bytes) -> bytes | None:
    """The gzipped Chrome trace, None where the run failed before it had one. Raises RunFileError."""
    with opened(source) as archive:
        if _TRACE not in archive.namelist():
            return None
    return _member(source, _TRACE)


def read_code(source: Path | bytes) -> dict[str, str]:
    """Generated sources by file name, in the order they were made. Raises RunFileError."""
    with opened(source) as archive:
        names = [name for name in archive.namelist() if name.startswith(_CODE)]
    return {name.removeprefix(_CODE): _member(source, name).decode("utf-8", "replace") for name in names}


def is_zip(source: Path) -> bool:
    """Whether a file is a zip at all: a run file, rather than a bare trace."""
    return zipfile.is_zipfile(source)


def opened(source: Path | bytes) -> zipfile.ZipFile:
    """The zip behind a run file, to be closed by the caller. Raises RunFileError."""
    try:
        archive = zipfile.ZipFile(io.BytesIO(source) if isinstance(source, bytes) else source)
    except FileNotFoundError as error:
        raise RunFileError(f"There is no file {error.filename}; check the path.") from error
    except DAMAGE as error:
        raise RunFileError(
            "The file is not a run (a zip with a manifest) or is damaged; fetch or record it again."
        ) from error
    # Of a sweep's zip that was cut off, the last run file in it would be found, and taken for all that there is.
    if archive.infolist() and min(member.header_offset for member in archive.infolist()) > 0:
        archive.close()
        raise RunFileError(
            "The file is damaged: its beginning does not belong to the zip at its end; fetch or export it again."
        )
    return archive


def _member(source: Path | bytes, name: str) -> bytes:
    with opened(source) as archive:
        if name not in archive.namelist():
            raise RunFileError(f"The zip holds no {name}, so it is not a FusionScope run.")
        if archive.getinfo(name).file_size > _BYTES_MAX.get(name, _CODE_BYTES_MAX):
            raise RunFileError(f"{name} in the run file is far larger than any run's; that is no run of FusionScope.")
        try:
            return archive.read(name)
        except DAMAGE as error:
            raise RunFileError(f"{name} in the run file is damaged; fetch or record it again.") from error
