"""From JSON text to events: a fast typed decode, and a tolerant one for what strict parsers refuse.

The fast one keeps only the fields that the tables need, so memory stays near three times the size of the JSON.
"""

import json
import re
from decimal import Decimal
from typing import Any

import msgspec

from core.trace.errors import TraceError

# Values are typed Any on purpose: a number written as a string, or a grid that is a text, must not cost the fast path.
_NO_TEXT = msgspec.Raw(b"")


class Args(msgspec.Struct, gc=False):
    """The arguments of an event that the tables need. Shapes and strides stay JSON text: few differ, so few are parsed."""

    correlation: Any = None
    stream: Any = None
    device: Any = None
    grid: Any = None
    block: Any = None
    registers: Any = msgspec.field(default=None, name="registers per thread")
    shared_memory: Any = msgspec.field(default=None, name="shared memory")
    name: Any = None
    labels: Any = None
    input_dims: msgspec.Raw = msgspec.field(default=_NO_TEXT, name="Input Dims")
    input_dims_old: msgspec.Raw = msgspec.field(default=_NO_TEXT, name="Input dims")
    input_strides: msgspec.Raw = msgspec.field(default=_NO_TEXT, name="Input Strides")


class Event(msgspec.Struct, gc=False):
    """One entry of traceEvents, as far as the tables need it."""

    ph: Any = None
    name: Any = None
    cat: Any = None
    ts: Any = None
    dur: Any = None
    pid: Any = None
    tid: Any = None
    args: Args | None = None


class Document(msgspec.Struct):
    """A whole trace file; notes says what had to be repaired."""

    events: list[Event] = msgspec.field(name="traceEvents")
    base_time_ns: Any = msgspec.field(default=None, name="baseTimeNanoseconds")
    devices: Any = msgspec.field(default=None, name="deviceProperties")
    compute_devices: Any = msgspec.field(default=None, name="computeProperties")
    distributed: Any = msgspec.field(default=None, name="distributedInfo")
    notes: list[str] = msgspec.field(default_factory=list, name="fusionscope notes")


class _Time(msgspec.Struct, gc=False):
    ts: msgspec.Raw = msgspec.Raw(b"null")


class _Times(msgspec.Struct):
    events: list[_Time] = msgspec.field(name="traceEvents")


class _RawEvents(msgspec.Struct):
    events: list[msgspec.Raw] = msgspec.field(name="traceEvents")


_ESCAPE = re.compile(r'\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})|\\')
_ARGS_KEYS = {field.encode_name: field.name for field in msgspec.structs.fields(Args)}
_RAW_KEYS = {field.encode_name for field in msgspec.structs.fields(Args) if field.type is msgspec.Raw}


def decode(content: bytes) -> Document:
    """The events of a trace; content is JSON text: an object with traceEvents or a bare list of events.

    Raises TraceError when the text is cut off, is not JSON, or is JSON of another kind.
    """
    try:
        if _is_list(content):
            return Document(events=msgspec.json.decode(content, type=list[Event]))
        return msgspec.json.decode(content, type=Document)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _from_tree(_tolerant(content))


def exact_times(content: bytes) -> list[str] | None:
    """The ts of every event as it is written in the file, or None when only the tolerant decoder reads the file.

    A float64 holds nanoseconds only up to 2**43 us; files with absolute times lie beyond.
    """
    try:
        if _is_list(content):
            times = msgspec.json.decode(content, type=list[_Time])
        else:
            times = msgspec.json.decode(content, type=_Times).events
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return [bytes(time.ts).decode().strip('"') for time in times]


def raw_event(content: bytes, index: int) -> dict[str, Any]:
    """The index-th entry of traceEvents with every field. Raises TraceError when there is none."""
    try:
        if _is_list(content):
            entries: list[Any] = msgspec.json.decode(content, type=list[msgspec.Raw])
        else:
            entries = msgspec.json.decode(content, type=_RawEvents).events
        event = msgspec.json.decode(entries[index]) if 0 <= index < len(entries) else None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        entries = _entries(_tolerant(content, exact=False))
        event = entries[index] if 0 <= index < len(entries) else None
    if not isinstance(event, dict):
        raise TraceError(f"The trace has no event number {index}: read the trace again.")
    return event


def _is_list(content: bytes) -> bool:
    return content[:64].lstrip()[:1] == b"["


def _tolerant(content: bytes, *, exact: bool = True) -> Any:
    """JSON with NaN, bad escapes, control characters or bad UTF-8 read all the same."""
    text = content.decode("utf-8", "replace")
    text = _ESCAPE.sub(lambda match: match[0] if len(match[0]) > 1 else "\\\\", text)
    try:
        return json.loads(text, strict=False, parse_float=Decimal if exact else None)
    except json.JSONDecodeError as error:
        if not text.lstrip().startswith(("{", "[")):
            raise TraceError(
                "This is not a trace: it is not JSON. Give the file that torch.profiler exported."
            ) from error
        if error.pos >= len(text.rstrip()) - 1 or error.msg.startswith("Unterminated string"):
            raise TraceError(
                f"The trace is cut off after {len(content)} bytes: export it again or copy the whole file."
            ) from error
        raise TraceError(f"The trace is not valid JSON at line {error.lineno}: export it again.") from error
    except (ValueError, RecursionError) as error:
        raise TraceError("The JSON holds nesting or numbers that no trace has: export the trace again.") from error


def _entries(tree: Any) -> list[Any]:
    entries = tree.get("traceEvents") if isinstance(tree, dict) else tree
    if not isinstance(entries, list):
        raise TraceError("This is JSON but not a Chrome trace (no traceEvents): give the file torch.profiler exported.")
    return entries


def _from_tree(tree: Any) -> Document:
    top = tree if isinstance(tree, dict) else {}
    return Document(
        events=[_event(entry) for entry in _entries(tree)],
        base_time_ns=top.get("baseTimeNanoseconds"),
        devices=_plain(top.get("deviceProperties")),
        compute_devices=_plain(top.get("computeProperties")),
        distributed=_plain(top.get("distributedInfo")),
        notes=["The file is not strict JSON (or has fields of odd types); it was repaired while reading."],
    )


def _event(entry: Any) -> Event:
    if not isinstance(entry, dict):
        return Event()
    raw = entry.get("args")
    args = None
    if isinstance(raw, dict):
        values = {key: raw[key] for key in _ARGS_KEYS.keys() & raw.keys()}
        args = Args(**{_ARGS_KEYS[key]: _json(one) if key in _RAW_KEYS else one for key, one in values.items()})
    fields = {key: entry.get(key) for key in ("ph", "name", "cat", "ts", "dur", "pid", "tid")}
    return Event(**fields, args=args)


def _json(value: Any) -> msgspec.Raw:
    return msgspec.Raw(json.dumps(value, default=str).encode())


def _plain(value: Any) -> Any:
    """Decimals, which only times need, back to floats."""
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    return float(value) if isinstance(value, Decimal) else value
