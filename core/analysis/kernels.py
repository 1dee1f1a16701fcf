"""The kernel table: which kernels ran, how often in a step, and how long each took."""

from typing import Any

import numpy as np
import pandas as pd

from core.analysis.families import family
from core.analysis.groups import groups, step_annotations
from core.analysis.spread import spread
from core.trace import GPU_WORK, Tables, codes, column, kind_mask

COLUMNS = (
    "name", "family", "kind", "launches_per_step", "n", "median_us", "min_us", "max_us", "p25_us", "p75_us", "sum_us",
    "share", "grid", "block", "registers", "shared_memory_bytes", "stream", "device", "n_events",
)  # fmt: skip
_TEXTS = ("name", "kind", "grid", "block")
_NUMBERS = ("registers", "shared_memory_bytes", "stream", "device")


def kernel_table(
    tables: Tables, *, step: int | None = None, by: tuple[str, ...] = ("name", "grid", "block")
) -> pd.DataFrame:
    """One row per kernel identity (kernels, memcpy and memset), in the order in which a step first runs them.

    by names the columns that make the identity (of name, grid, block, registers, shared_memory_bytes, stream, device);
    a column outside it is None where it varies. Times in us over the n events that have one; n_events counts all.
    launches_per_step is NaN without steps; share is of the time of all rows. step: only the work of that step.
    """
    events = tables.events
    event_step, start_ns, dur_ns = column(events, "step"), column(events, "start_ns"), column(events, "dur_ns")
    is_work = kind_mask(events, *GPU_WORK)
    rows = np.flatnonzero(is_work if step is None else is_work & (event_step == step))
    coded = {name: codes(events, name) for name in _TEXTS}
    keys = {name: coded[name][0][rows] for name in _TEXTS} | {name: column(events, name)[rows] for name in _NUMBERS}
    n_steps = len(step_annotations(tables)) if step is None else 1
    total_us = dur_ns[rows][dur_ns[rows] >= 0].sum() / 1000
    offset_ns = _offset_in_step(event_step[rows], start_ns[rows])

    table = []
    for part in groups(keys["kind"], *(keys[name] for name in by)):
        durations = dur_ns[rows[part]]
        times_us = durations[durations >= 0] / 1000
        texts = {name: _one_text(keys[name][part], coded[name][1]) for name in _TEXTS}
        numbers = {name: _one_number(keys[name][part]) for name in _NUMBERS}
        in_steps = int((event_step[rows[part]] >= 0).sum())
        first = part[0]
        table.append(
            {
                **texts,
                **numbers,
                "family": family(texts["name"] or "", texts["kind"] or "kernel"),
                "launches_per_step": in_steps / n_steps if n_steps else np.nan,
                **times(times_us, total_us),
                "n_events": len(part),
                "_order": (event_step[rows[first]] < 0, int(offset_ns[first]), int(start_ns[rows[first]])),
            }
        )
    table.sort(key=lambda row: row["_order"])
    return pd.DataFrame(table, columns=list(COLUMNS)).astype(dict.fromkeys(_NUMBERS, "Int64"))


def launch_notes(tables: Tables, rows: np.ndarray) -> dict[int, str]:
    """What the trace says of the launch of each GPU event among the rows: grid, block, registers, shared memory."""
    events = tables.events
    grid, grids = codes(events, "grid")
    block, blocks = codes(events, "block")
    registers, shared = column(events, "registers"), column(events, "shared_memory_bytes")
    found = {}
    for row in rows.tolist():
        parts = [
            f"grid {grids[grid[row]]}" if grid[row] >= 0 else "",
            f"block {blocks[block[row]]}" if block[row] >= 0 else "",
            f"{registers[row]} registers a thread" if registers[row] >= 0 else "",
            f"{shared[row]:,} bytes of shared memory" if shared[row] >= 0 else "",
        ]
        if text := ", ".join(part for part in parts if part):
            found[row] = text
    return found


def times(times_us: np.ndarray, total_us: float) -> dict[str, Any]:
    """n, median, extremes, quartiles and sum of times in us, and their share of total_us."""
    found = spread(times_us)
    sum_us = float(times_us.sum()) if found else np.nan
    return {
        "n": found.n if found else 0,
        "median_us": found.median if found else np.nan,
        "min_us": found.min if found else np.nan,
        "max_us": found.max if found else np.nan,
        "p25_us": found.p25 if found else np.nan,
        "p75_us": found.p75 if found else np.nan,
        "sum_us": sum_us,
        "share": sum_us / total_us if found and total_us else np.nan,
    }


def _offset_in_step(step: np.ndarray, start_ns: np.ndarray) -> np.ndarray:
    """Per event the time since the first GPU work of its step."""
    values, inverse = np.unique(step, return_inverse=True)
    first_ns = np.full(len(values), np.iinfo(np.int64).max)
    np.minimum.at(first_ns, inverse, start_ns)
    return start_ns - first_ns[inverse]


def _one_text(found: np.ndarray, texts: list[str]) -> str | None:
    return texts[found[0]] if found[0] >= 0 and np.all(found == found[0]) else None


def _one_number(found: np.ndarray) -> int | None:
    return int(found[0]) if found[0] >= 0 and np.all(found == found[0]) else None
