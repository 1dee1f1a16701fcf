"""From a path or bytes to the JSON text of a trace: unpacks gzip and refuses what is no trace at all."""

import gzip
import zlib
from pathlib import Path
from typing import cast

from core.trace.errors import TraceError

_DAMAGED: tuple[type[Exception], ...] = (gzip.BadGzipFile, zlib.error)
try:
    from isal import igzip, igzip_lib

    _decompress = igzip.decompress
    _DAMAGED = (*_DAMAGED, cast(type[Exception], igzip_lib.IsalError))
except ImportError:
    _decompress = gzip.decompress

_UTF8_MARK = b"\xef\xbb\xbf"


def json_bytes(source: Path | bytes) -> bytes:
    """The JSON text behind source, which is a path or the content of a file, gzipped or plain.

    Raises TraceError for an unreadable path, an empty file, a zip archive or a damaged gzip stream.
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
        content = _unpacked(content)
    content = content.removeprefix(_UTF8_MARK)
    if not content.strip():
        raise TraceError("The file is empty: export the trace again.")
    return content


def _unpacked(content: bytes) -> bytes:
    try:
        return _decompress(content)
    except EOFError as error:
        raise TraceError("The gzip file ends too early: copy or download the whole file again.") from error
    except _DAMAGED as error:
        raise TraceError("The gzip file is damaged: copy or download it again.") from error
