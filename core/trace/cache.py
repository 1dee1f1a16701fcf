"""Tables on disk: one Arrow IPC file, memory-mapped on opening, so that many readers share one copy."""

import json
import os
import tempfile
import zlib
from pathlib import Path

import pyarrow as pa

from core.trace.errors import TablesError
from core.trace.tables import Tables

FORMAT = 2
_FILE, _CHECKSUM = "tables.arrow", "tables.crc32"
_META, _TRACKS = b"fusionscope.meta", b"fusionscope.tracks"


def write_tables(tables: Tables, folder: Path) -> None:
    """Writes the tables into folder (made if missing). A reader sees the old file or the new one, never half of one."""
    folder.mkdir(parents=True, exist_ok=True)
    header = json.dumps({"format": FORMAT, "meta": tables.meta}).encode()
    # The tracks ride in the schema of the events: two files could not be replaced in one step.
    events = tables.events.combine_chunks().replace_schema_metadata({_META: header, _TRACKS: _packed(tables.tracks)})
    handle, temporary = tempfile.mkstemp(dir=folder, suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file, pa.ipc.new_file(file, events.schema) as writer:
            writer.write_table(events)
        checksum = zlib.crc32(Path(temporary).read_bytes())
        Path(temporary).replace(folder / _FILE)
        (folder / _CHECKSUM).write_text(str(checksum))
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def open_tables(folder: Path) -> Tables:
    """The tables of a folder, memory-mapped. Raises TablesError when they are missing, foreign or of another format."""
    path = folder / _FILE
    if not path.is_file():
        raise TablesError("The trace has no tables yet: read the trace first.")
    try:
        mapped = pa.memory_map(str(path))
        # Arrow believes its file: damage inside a buffer would only show as nonsense, or as an error much later.
        if str(zlib.crc32(mapped.read_buffer())) != (folder / _CHECKSUM).read_text():
            raise TablesError("The tables of the trace are damaged: read the trace again.")
        events = pa.ipc.open_file(mapped).read_all()
        metadata = events.schema.metadata or {}
        header = json.loads(metadata[_META])
        tracks_bytes = metadata[_TRACKS]
    except TablesError:
        raise
    except (pa.ArrowException, OSError, KeyError, ValueError) as error:
        raise TablesError("The tables of the trace are damaged or foreign: read the trace again.") from error
    if header["format"] != FORMAT:
        raise TablesError("The tables of the trace were written by another version: read the trace again.")
    tracks = pa.ipc.open_stream(tracks_bytes).read_all()
    return Tables(events.replace_schema_metadata(None), tracks, header["meta"])


def _packed(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()
