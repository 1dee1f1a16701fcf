"""When the GPU worked and when it waited."""

import numpy as np
import pandas as pd

from core.analysis.groups import names_of, step_annotations
from core.trace import GPU_WORK, Tables, column, kind_mask


def busy_us_by_device(tables: Tables, *, window_ns: tuple[int, int] | None = None) -> dict[int, float]:
    """Per device the length (us) of the union of its kernels, memcpy and memset, clipped to window_ns [start, end)."""
    device = column(tables.events, "device")
    rows = _timed_work(tables)
    return {
        int(number): union_ns(*_clipped(tables, rows[device[rows] == number], window_ns)) / 1000
        for number in np.unique(device[rows])
    }


def union_ns(start_ns: np.ndarray, end_ns: np.ndarray) -> int:
    """The length of the union of intervals that are sorted by start."""
    if not len(start_ns):
        return 0
    covered = np.concatenate((start_ns[:1], np.maximum.accumulate(end_ns)[:-1]))
    return int(np.maximum(end_ns - np.maximum(start_ns, covered), 0).sum())


def gaps(tables: Tables, device: int, *, step: int | None = None, minimum_us: float = 1.0) -> pd.DataFrame:
    """The idle gaps of at least minimum_us between the GPU work of a device, by start.

    One row a gap: start_us (from the start of the trace), dur_us, after and before (the names of the work around it).
    step: only from the first to the last GPU work of that step.
    """
    events = tables.events
    start_ns = column(events, "start_ns")
    end_ns = start_ns + column(events, "dur_ns")
    rows = _timed_work(tables)
    rows = rows[column(events, "device")[rows] == device]
    if step is not None:
        own = rows[column(events, "step")[rows] == step]
        # Work of other steps, or of none, also keeps the device busy in between.
        first_ns, last_ns = (start_ns[own].min(), end_ns[own].max()) if len(own) else (0, 0)
        rows = rows[(start_ns[rows] < last_ns) & (end_ns[rows] > first_ns)]
    last_end = np.maximum.accumulate(end_ns[rows]) if len(rows) else np.empty(0, np.int64)
    idle_ns = start_ns[rows][1:] - last_end[:-1]
    found = np.flatnonzero((idle_ns > 0) & (idle_ns >= minimum_us * 1000))
    # The work that ended last before the gap need not be the one that started last.
    reaches = np.where(end_ns[rows] == last_end, np.arange(len(rows)), 0)
    ended_last = np.maximum.accumulate(reaches)[found] if len(found) else found
    return pd.DataFrame(
        {
            "start_us": last_end[found] / 1000,
            "dur_us": idle_ns[found] / 1000,
            "after": names_of(tables, rows[ended_last]),
            "before": names_of(tables, rows[found + 1]),
        }
    )


def step_windows(tables: Tables) -> pd.DataFrame:
    """One row a step: step, start_ns, end_ns (of its annotation on the CPU), gpu_start_ns, gpu_end_ns (of its GPU work,
    NULL without any), kernels (count), kernel_time_us (sum), gpu_busy_us (union per device, summed over devices).
    """
    events = tables.events
    start_ns, dur_ns, device = column(events, "start_ns"), column(events, "dur_ns"), column(events, "device")
    end_ns = start_ns + np.maximum(dur_ns, 0)
    step, is_kernel, work = column(events, "step"), kind_mask(events, "kernel"), _timed_work(tables)
    table = []
    for number, annotations in step_annotations(tables).items():
        own = work[step[work] == number]
        timed_kernels = own[is_kernel[own]]
        n_kernels = int((is_kernel & (step == number)).sum())
        table.append(
            {
                "step": number,
                "start_ns": int(start_ns[annotations].min()),
                "end_ns": int(end_ns[annotations].max()),
                "gpu_start_ns": int(start_ns[own].min()) if len(own) else None,
                "gpu_end_ns": int(end_ns[own].max()) if len(own) else None,
                "kernels": n_kernels,
                "kernel_time_us": (
                    np.nan if n_kernels and not len(timed_kernels) else float(dur_ns[timed_kernels].sum() / 1000)
                ),
                "gpu_busy_us": sum(
                    union_ns(start_ns[part], end_ns[part]) / 1000
                    for part in (own[device[own] == one] for one in np.unique(device[own]))
                ),
            }
        )
    names = ["step", "start_ns", "end_ns", "gpu_start_ns", "gpu_end_ns", "kernels", "kernel_time_us", "gpu_busy_us"]
    return pd.DataFrame(table, columns=names).astype(
        dict.fromkeys(names[:6], "Int64") | {"kernel_time_us": "float64", "gpu_busy_us": "float64"}
    )


def _timed_work(tables: Tables) -> np.ndarray:
    return np.flatnonzero(kind_mask(tables.events, *GPU_WORK) & (column(tables.events, "dur_ns") >= 0))


def _clipped(tables: Tables, rows: np.ndarray, window_ns: tuple[int, int] | None) -> tuple[np.ndarray, np.ndarray]:
    start_ns = column(tables.events, "start_ns")[rows]
    end_ns = start_ns + column(tables.events, "dur_ns")[rows]
    if window_ns is not None:
        start_ns, end_ns = np.clip(start_ns, *window_ns), np.clip(end_ns, *window_ns)
    return start_ns, end_ns
