"""When the GPU worked and when it waited."""

from dataclasses import dataclass

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


def gaps(tables: Tables, *, minimum_us: float = 1.0) -> pd.DataFrame:
    """The idle gaps of at least minimum_us between the GPU work of each device, by device and start.

    One row a gap: step (the step between whose first and last GPU work it lies, NULL for none), device, start_us (from
    the start of the trace), dur_us, after and before (the names of the work around it), row (of the work that ends it).
    """
    events = tables.events
    device, work = column(events, "device"), _timed_work(tables)
    parts = [_gaps_of(tables, work[device[work] == number], minimum_us) for number in np.unique(device[work])]
    names = ["step", "device", "start_us", "dur_us", "after", "before", "row"]
    found = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=names)
    return found.astype({"step": "Int64", "device": "int64", "start_us": float, "dur_us": float, "row": "int64"})


def _gaps_of(tables: Tables, rows: np.ndarray, minimum_us: float) -> pd.DataFrame:
    """The gaps between the GPU work in rows, all of one device."""
    start_ns = column(tables.events, "start_ns")[rows]
    end_ns = start_ns + column(tables.events, "dur_ns")[rows]
    last_end = np.maximum.accumulate(end_ns)
    idle_ns = start_ns[1:] - last_end[:-1]
    found = np.flatnonzero((idle_ns > 0) & (idle_ns >= minimum_us * 1000))
    # The work that ended last before the gap need not be the one that started last.
    ended_last = np.maximum.accumulate(np.where(end_ns == last_end, np.arange(len(rows)), 0))[found]
    step = _step_around(column(tables.events, "step")[rows], start_ns, end_ns, last_end[found], start_ns[found + 1])
    return pd.DataFrame(
        {
            "step": pd.arrays.IntegerArray(step, step < 0),
            "device": column(tables.events, "device")[rows[found]],
            "start_us": last_end[found] / 1000,
            "dur_us": idle_ns[found] / 1000,
            "after": names_of(tables, rows[ended_last]),
            "before": names_of(tables, rows[found + 1]),
            "row": rows[found + 1],
        }
    )


def _step_around(
    step: np.ndarray, start_ns: np.ndarray, end_ns: np.ndarray, gap_start_ns: np.ndarray, gap_end_ns: np.ndarray
) -> np.ndarray:
    """Per gap the step of which some work ended before it and some starts after it, else -1."""
    numbers = np.unique(step[step >= 0])
    if not len(numbers):
        return np.full(len(gap_start_ns), -1)
    first_ns = np.array([start_ns[step == number].min() for number in numbers])
    last_ns = np.array([end_ns[step == number].max() for number in numbers])
    order = np.argsort(first_ns, kind="stable")
    at = order[np.maximum(np.searchsorted(first_ns[order], gap_start_ns, side="right") - 1, 0)]
    inside = (first_ns[at] <= gap_start_ns) & (gap_end_ns <= last_ns[at])
    return np.where(inside, numbers[at], -1)


@dataclass(frozen=True)
class Idle:
    """The waiting of a GPU under the profiler, beside that without it; times in µs.

    gaps: those in sight, a table as of gaps(). suspects: those of them inside a step that, over all its gaps, waits for
    longer than a whole step does without the profiler (or where that is unknown): they may be the profiler's own.
    unprofiled_us: how long the GPU waits in a whole step without the profiler, None for unknown.
    """

    gaps: pd.DataFrame
    suspects: pd.DataFrame
    total_us: float
    longest_us: float
    unprofiled_us: float | None


def idle(found: pd.DataFrame, unprofiled_us: float | None, *, step: int | None = None) -> Idle:
    """What the gaps of a trace come to: those inside `step`, or all of them."""
    in_sight = found if step is None else found[found["step"] == step]
    waited_us = in_sight.groupby("step")["dur_us"].transform("sum")
    is_suspect = waited_us.notna() if unprofiled_us is None else waited_us > unprofiled_us
    return Idle(
        gaps=in_sight,
        suspects=in_sight[is_suspect],
        total_us=float(in_sight["dur_us"].sum()),
        longest_us=float(in_sight["dur_us"].max()) if len(in_sight) else 0.0,
        unprofiled_us=unprofiled_us,
    )


def unprofiled_idle_us(tables: Tables, unprofiled_step_us: float | None) -> float | None:
    """How long the GPU waits in a step without the profiler: the median unprofiled step less the median busy time.

    None where either is unknown, or where several GPUs worked: which of them the step was taken on is not told.
    """
    work = _timed_work(tables)
    busy_us = step_windows(tables)["gpu_busy_us"]
    if unprofiled_step_us is None or busy_us.empty or len(np.unique(column(tables.events, "device")[work])) != 1:
        return None
    return max(unprofiled_step_us - float(busy_us.median()), 0.0)


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
