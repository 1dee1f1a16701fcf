"""From a path or bytes to the JSON text of a trace: unpacks gzip and refuses what is no trace at all."""

import gzip
import io
import zlib
from pathlib import Path
from typing import cast

from core.trace.errors import TraceError

_DAMAGED: tuple[type[Exception], ...] = (gzip.BadGzipFile, zlib.error)
try:
    from isal import igzip, igzip_lib

    _decompress, _open = igzip.decompress, igzip.open
    _DAMAGED = (*_DAMAGED, cast(type[Exception], igzip_lib.IsalError))
except ImportError:
    _decompress, _open = gzip.decompress, gzip.open

LIMIT_BYTES = 4_000_000_000
_GZIP_RATIO_MAX = 1032
_TOO_LARGE = "The trace is larger than {:.1f} GB of text, which is more than is read here: profile fewer steps."
_UTF8_MARK = b"\xef\xbb\xbf"


def json_bytes(source: Path | bytes, *, limit_bytes: int = LIMIT_BYTES) -> bytes:
    """The JSON text behind source, which is a path or the content of a file, gzipped or plain.

    Raises TraceError for an unreadable path, an empty file, a zip archive, a damaged gzip stream, or text beyond the
    limit: a few megabytes of gzip can hold gigabytes.
    """
    if isinstance(source, bytes):
        content = source
    else:
        try:
            content = source.read_bytes()
        except OSError as error:
            raise TraceError(f"The file {source.name} cannot be read: {error.strerror}.") from error
    if content.startswith(b"PK\x03\x04"):
        raise TraceError("This is a zip archive, not a trace: unpack it and give the .json or .json.gz file inside.")
    if content.startswith(b"\x1f\x8b"):
        content = _unpacked(content, limit_bytes)
    if len(content) > limit_bytes:
        raise TraceError(_TOO_LARGE.format(limit_bytes / 1e9))
    content = content.removeprefix(_UTF8_MARK)
    if not content.strip():
        raise TraceError("The file is empty: export the trace again.")
    return content


def _unpacked(content: bytes, limit_bytes: int) -> bytes:
    try:
        if len(content) * _GZIP_RATIO_MAX <= limit_bytes:
            return _decompress(content)
        with _open(io.BytesIO(content)) as stream:
            return cast(bytes, stream.read(limit_bytes + 1))
    except EOFError as error:
        raise TraceError("The gzip file ends too early: copy or download the whole file again.") from error
    except _DAMAGED as error:
        raise TraceError("The gzip file is damaged: copy or download it again.") from error
