"""The columns of the tables, from decoded events: codes, tracks, and what only GPU work has."""

from collections.abc import Iterable
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from core.trace.decode import Document, Event
from core.trace.tables import GPU_WORK, KINDS, ROLES

_CPU_KINDS = ("op", "annotation", "launch", "python")
_GPU_KINDS = (*GPU_WORK, "gpu_annotation")
_INT64 = 2**63


def tracks(document: Document, events: list[Event], kind: np.ndarray) -> tuple[np.ndarray, pa.Table]:
    """(track of every event, the table of tracks)."""
    known: dict[tuple[str, str], int] = {}
    track = np.fromiter(
        (known.setdefault((str(event.pid), str(event.tid)), len(known)) for event in events), np.int32, len(events)
    )
    threads: dict[tuple[str, str], str] = {}
    processes: dict[str, str] = {}
    for event in document.events:
        if event.ph == "M" and event.args is not None and event.args.name:
            if event.name == "thread_name":
                threads[str(event.pid), str(event.tid)] = str(event.args.name)
            elif event.name == "process_name":
                processes[str(event.pid)] = str(event.args.name)
    has = {role: np.zeros(len(known), bool) for role in ("cpu", "gpu")}
    for role, kinds in (("cpu", _CPU_KINDS), ("gpu", _GPU_KINDS)):
        has[role][track[np.isin(kind, [KINDS.index(text) for text in kinds])]] = True
    labels = [threads.get(key) or processes.get(key[0]) or "/".join(key) for key in known]
    role_code = np.where(has["cpu"], 0, np.where(has["gpu"], 1, 2))
    table = pa.table(
        {
            "track": pa.array(np.arange(len(known), dtype=np.int32)),
            "pid": pa.array([_encodable(pid) for pid, _ in known], pa.string()),
            "tid": pa.array([_encodable(tid) for _, tid in known], pa.string()),
            "label": pa.array([_encodable(label) for label in labels], pa.string()),
            "role": dictionary(role_code, list(ROLES), pa.int8()),
        }
    )
    return track, table


def gpu_columns(events: list[Event], is_gpu: np.ndarray, is_kernel: np.ndarray) -> dict[str, pa.Array]:
    """device and stream of GPU work, and the launch configuration of kernels; NULL for everything else."""
    columns: dict[str, list[Any]] = {
        name: [None] * len(events) for name in ("device", "stream", "grid", "block", "registers", "shared_memory_bytes")
    }
    for row in np.flatnonzero(is_gpu).tolist():
        event, args = events[row], events[row].args
        device = integer(args.device) if args else None
        stream = integer(args.stream) if args else None
        device = integer(event.pid) if device is None else device
        columns["device"][row] = device if device is not None and abs(device) < 2**31 else None
        columns["stream"][row] = _stream_of_thread(event.tid) if stream is None else stream
        if args and is_kernel[row]:
            columns["grid"][row] = _extent(args.grid)
            columns["block"][row] = _extent(args.block)
            registers = integer(args.registers)
            columns["registers"][row] = registers if registers is not None and abs(registers) < 2**31 else None
            columns["shared_memory_bytes"][row] = integer(args.shared_memory)
    types = {"device": pa.int32(), "stream": pa.int64(), "registers": pa.int32(), "shared_memory_bytes": pa.int64()}
    return {
        name: pa.array(values, types[name]) if name in types else pa.array(values, pa.string()).dictionary_encode()
        for name, values in columns.items()
    }


_inputs = msgspec.json.Decoder(list[list[int | list[int]]])


def input_columns(events: list[Event], is_op: np.ndarray) -> dict[str, pa.Array]:
    """input_dims and input_strides of operators as texts, "[8192, 768] [768, 3072]", one bracket an argument.

    What is no tensor is []; a list of tensors is a bracket of brackets. NULL where the trace has none, or nonsense.
    """
    args = [event.args if wanted else None for event, wanted in zip(events, is_op.tolist(), strict=True)]
    return {
        "input_dims": _coded_inputs((one.input_dims or one.input_dims_old) if one else None for one in args),
        "input_strides": _coded_inputs(one.input_strides if one else None for one in args),
    }


def _coded_inputs(raw: Iterable[msgspec.Raw | None]) -> pa.Array:
    known: dict[bytes, int] = {b"": -1}
    texts: dict[str, int] = {}
    codes = []
    for one in raw:
        written = bytes(one) if one else b""
        code = known.get(written)
        if code is None:
            text = _inputs_text(written)
            code = known[written] = -1 if text is None else texts.setdefault(text, len(texts))
        codes.append(code)
    found = np.array(codes, np.int32)
    return pa.DictionaryArray.from_arrays(pa.array(found, mask=found < 0), pa.array(list(texts), pa.string()))


def _inputs_text(written: bytes) -> str | None:
    try:
        return " ".join(map(str, _inputs.decode(written))) or None
    except msgspec.DecodeError:
        return None


def _extent(value: Any) -> str | None:
    return _encodable(",".join(map(str, value))) if isinstance(value, list | tuple) else None


def _stream_of_thread(tid: Any) -> int | None:
    """Old files call the track of a stream 'stream 7'."""
    number = integer(tid)
    if number is None and isinstance(tid, str):
        number = integer(tid.removeprefix("stream "))
    return number


def integer(value: Any) -> int | None:
    """value as an int64, None when it is none; ids stand in files as numbers and as texts."""
    if type(value) is str and value.isascii() and value.removeprefix("-").isdigit() and len(value) < 20:
        value = int(value)
    if type(value) is float and value.is_integer():
        value = int(value)
    if type(value) is int and -_INT64 <= value < _INT64:
        return value
    return None


def coded(values: list[Any]) -> tuple[np.ndarray, list[str]]:
    """(codes, texts): every value as a text, and the distinct texts in the order of their first use."""
    known: dict[str, int] = {}
    texts = (value if type(value) is str else "" if value is None else str(value) for value in values)
    codes = np.fromiter((known.setdefault(text, len(known)) for text in texts), np.int32, len(values))
    return codes, [_encodable(text) for text in known]


def _encodable(text: str) -> str:
    # Half of a surrogate pair can stand in JSON, but not in UTF-8.
    return text.encode("utf-8", "replace").decode()


def dictionary(codes: np.ndarray, values: list[str], index_type: pa.DataType) -> pa.Array:
    """A dictionary column; values[codes[i]] is the i-th value."""
    return pa.DictionaryArray.from_arrays(pa.array(codes, index_type), pa.array(values, pa.string()))


def optional(rows: np.ndarray) -> pa.Array:
    """An int32 column where -1 becomes NULL."""
    return pa.array(rows.astype(np.int32), mask=rows < 0)
