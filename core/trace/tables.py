"""The tables every trace becomes, and how their columns are read as numpy arrays."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

KINDS = ("op", "annotation", "launch", "kernel", "memcpy", "memset", "gpu_annotation", "python", "other")
ROLES = ("cpu", "gpu", "other")
GPU_WORK = ("kernel", "memcpy", "memset")


@dataclass(frozen=True)
class Tables:
    """A trace as tables.

    events: one row per complete event, sorted by (start_ns, -dur_ns, source).
    tracks: one row per (pid, tid): track, pid, tid, label, role.
    meta: base_time_ns, devices, start_us, n_events_in_file, distributed, notes.
    """

    events: pa.Table
    tracks: pa.Table
    meta: dict[str, Any]


def column(table: pa.Table, name: str, missing: int = -1) -> np.ndarray:
    """A numeric column as a numpy array, with `missing` where the table has NULL."""
    array = table[name].combine_chunks()
    if array.null_count:
        array = array.fill_null(missing)
    return array.to_numpy(zero_copy_only=False)


def codes(table: pa.Table, name: str) -> tuple[np.ndarray, list[str]]:
    """(codes, values) of a dictionary column: codes[i] indexes values, -1 where the table has NULL."""
    array = table[name].combine_chunks()
    indices = array.indices
    if indices.null_count:
        indices = indices.fill_null(-1)
    return indices.to_numpy(zero_copy_only=False), array.dictionary.to_pylist()


def kind_mask(table: pa.Table, *kinds: str) -> np.ndarray:
    """Which events are of one of the kinds, as a bool array."""
    kind_codes, names = codes(table, "kind")
    wanted = [code for code, name in enumerate(names) if name in kinds]
    return np.isin(kind_codes, wanted)
