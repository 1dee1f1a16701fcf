"""Reads a Chrome trace of torch.profiler (Kineto) into tables."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from core.trace import columns, decode, links
from core.trace.decode import Document
from core.trace.errors import TraceError
from core.trace.source import LIMIT_BYTES, json_bytes
from core.trace.tables import GPU_WORK, KINDS, ROLES, Tables
from core.trace.times import decimal_us, lost_digits, nanoseconds

_KIND_OF_CATEGORY = {
    "cpu_op": "op",
    "operator": "op",
    "user_annotation": "annotation",
    "kernel": "kernel",
    "gpu_memcpy": "memcpy",
    "memcpy": "memcpy",
    "gpu_memset": "memset",
    "memset": "memset",
    "gpu_user_annotation": "gpu_annotation",
    "python_function": "python",
}
# Files of 2021 give annotations the category of ops.
_OLD_ANNOTATION = re.compile(r"ProfilerStep#\d+|Optimizer\.\w+#.*|enumerate\(DataLoader\)#.*")


def read_trace(source: Path | bytes, *, limit_bytes: int = LIMIT_BYTES) -> Tables:
    """The tables of a trace: source is a path or the content of a file, gzipped or plain; at most limit_bytes of text.

    Times are exact to the nanosecond. Raises TraceError when the file is not a readable trace.
    """
    content = json_bytes(source, limit_bytes=limit_bytes)
    document = decode.decode(content)
    indices = [index for index, event in enumerate(document.events) if event.ph == "X"]
    if not indices:
        raise TraceError(
            "The trace has no complete ('X') event, so there is nothing to show: profile again and export."
        )
    times: list[Any] = [document.events[index].ts for index in indices]
    written = decode.exact_times(content) if lost_digits(times) else None
    if written is not None:
        times = [written[index] for index in indices]
    start_ns, usable = nanoseconds(times)
    if not usable.any():
        raise TraceError("No event of the trace has a readable start time (ts): export the trace again.")
    kept = [index for index, good in zip(indices, usable.tolist(), strict=True) if good]
    return _tables(document, np.array(kept, np.int32), start_ns[usable], int((~usable).sum()))


def event_args(source: Path | bytes, source_index: int) -> dict[str, Any]:
    """The whole raw event at source_index (column `source`) of traceEvents, as it stands in the file.

    Raises TraceError when the file is unreadable or has no such event.
    """
    return decode.raw_event(json_bytes(source), source_index)


def _tables(document: Document, source: np.ndarray, absolute_ns: np.ndarray, n_without_time: int) -> Tables:
    events = [document.events[index] for index in source.tolist()]
    dur_ns, has_dur = _durations([event.dur for event in events])
    order = np.lexsort((source, -dur_ns, absolute_ns))
    events = [events[row] for row in order.tolist()]
    source, dur_ns, has_dur = source[order], dur_ns[order], has_dur[order]
    first_ns = int(absolute_ns[order[0]])
    start_ns = absolute_ns[order] - first_ns

    name, names = columns.coded([event.name for event in events])
    category, categories = columns.coded([event.cat for event in events])
    kind = np.array([KINDS.index(_kind(text)) for text in categories], np.int8)[category]
    old = np.array([bool(_OLD_ANNOTATION.fullmatch(text)) for text in names])[name]
    kind[old & (kind == KINDS.index("op"))] = KINDS.index("annotation")
    is_kind = {text: kind == code for code, text in enumerate(KINDS)}
    is_work = np.logical_or.reduce([is_kind[text] for text in GPU_WORK])
    is_gpu = is_work | is_kind["gpu_annotation"]

    track, tracks = columns.tracks(document, events, kind)
    role = np.array([ROLES.index(text) for text in tracks["role"].to_pylist()])[track]
    on_cpu = role == ROLES.index("cpu")
    end_ns = start_ns + np.where(has_dur, dur_ns, 0)
    nest = links.nesting(start_ns, end_ns, track, is_kind["op"], is_kind["launch"])

    correlation = pa.array(
        [columns.integer(event.args.correlation) if event.args else None for event in events], pa.int64()
    )
    known = ~correlation.is_null().to_numpy(zero_copy_only=False)
    correlation_id = correlation.fill_null(0).to_numpy()
    launch = links.launch_rows(correlation_id, known, is_kind["launch"], is_work)
    linked = launch >= 0
    op = np.where(is_kind["launch"], nest.op, -1)
    op[linked] = nest.op[launch[linked]]
    numbers = links.step_numbers(names)[name]
    steps = np.flatnonzero((numbers >= 0) & is_kind["annotation"])
    step = links.step_at(start_ns, start_ns[steps], end_ns[steps], numbers[steps])
    step[~on_cpu | is_gpu] = -1
    step[linked] = step[launch[linked]]

    table = pa.table(
        {
            "start_ns": pa.array(start_ns),
            "dur_ns": pa.array(dur_ns, mask=~has_dur),
            "name": columns.dictionary(name, names, pa.int32()),
            "kind": columns.dictionary(kind, list(KINDS), pa.int8()),
            "category": columns.dictionary(category, categories, pa.int32()),
            "track": pa.array(track),
            "depth": pa.array(np.minimum(nest.depth, np.iinfo(np.int16).max).astype(np.int16)),
            "parent": columns.optional(np.where(on_cpu, nest.parent, -1)),
            "correlation": correlation,
            **columns.gpu_columns(events, is_gpu, is_kind["kernel"]),
            **columns.input_columns(events, is_kind["op"]),
            "step": columns.optional(step),
            "launch": columns.optional(launch),
            "op": columns.optional(op),
            "source": pa.array(source),
        }
    )
    notes = [*document.notes, *_notes(has_dur, is_work, linked, n_without_time)]
    devices = next((found for found in (document.devices, document.compute_devices) if isinstance(found, list)), [])
    meta = {
        "base_time_ns": columns.integer(document.base_time_ns),
        "devices": [device for device in devices if isinstance(device, dict)],
        "start_us": decimal_us(first_ns),
        "n_events_in_file": len(document.events),
        "distributed": document.distributed if isinstance(document.distributed, dict) else {},
        "notes": notes,
    }
    return Tables(table, tracks, meta)


def _durations(values: list[Any]) -> tuple[np.ndarray, np.ndarray]:
    dur_ns, usable = nanoseconds(values)
    usable &= dur_ns >= 0
    return np.where(usable, dur_ns, 0), usable


def _kind(category: str) -> str:
    lower = category.lower()
    if lower.endswith(("runtime", "driver")):
        return "launch"
    return _KIND_OF_CATEGORY.get(lower, "other")


def _notes(has_dur: np.ndarray, is_work: np.ndarray, linked: np.ndarray, n_without_time: int) -> list[str]:
    n_without_dur = int((~has_dur).sum())
    n_without_launch = int((is_work & ~linked).sum())
    counted = (
        (n_without_time, "without a readable start time: left out."),
        (n_without_dur, "without a usable duration: counted, but left out of all times."),
        (n_without_launch, "on the GPU without a launch in the trace: shown, but belonging to no op and no step."),
    )
    return [f"{n} event{'' if n == 1 else 's'} {text}" for n, text in counted if n]
