"""The few numbers a run is told by: how many kernels a step has, how long they take, and how busy they keep the GPU."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from core.analysis.busy import step_windows
from core.analysis.groups import step_annotations
from core.analysis.spread import Spread, spread
from core.trace import Tables, kind_mask


@dataclass(frozen=True)
class Headline:
    """Of the profiled steps. `kernels_per_step` is None where the steps differ or there are none; times in µs.

    `busy_share` sets the GPU's busy time (union, profiled) against the unprofiled step; None where either is unknown.
    """

    steps: int
    kernels_per_step: int | None
    kernel_time_us: Spread | None
    gpu_busy_us: Spread | None
    busy_share: float | None


def headline(tables: Tables, unprofiled_step_us: float | None) -> Headline:
    """The headline of a run. `unprofiled_step_us` is the median step without the profiler, None where unknown."""
    windows = step_windows(tables)
    on_gpu = bool(kind_mask(tables.events, "kernel").any())
    counts = set(windows["kernels"].tolist())
    busy = spread(windows["gpu_busy_us"].to_numpy()) if on_gpu else None
    share = min(busy.median / unprofiled_step_us, 1.0) if busy and unprofiled_step_us else None
    return Headline(
        steps=len(windows),
        kernels_per_step=counts.pop() if on_gpu and len(counts) == 1 else None,
        kernel_time_us=spread(windows["kernel_time_us"].dropna().to_numpy()) if on_gpu else None,
        gpu_busy_us=busy,
        busy_share=share,
    )


def step_numbers(tables: Tables) -> tuple[int, ...]:
    """The profiler's numbers of the steps, in order."""
    return tuple(step_annotations(tables))


def step_window_ns(tables: Tables, step: int | None) -> tuple[int, int, int]:
    """(start, end, origin) in ns of the trace: of one step from its start on the CPU to the end of its GPU work, or of
    everything. The origin is what counts as 0 on an axis. Raises KeyError for a step the trace does not have."""
    windows = step_windows(tables)
    if step is None or windows.empty:
        start_ns = tables.events["start_ns"].to_numpy()
        end_ns = start_ns + tables.events["dur_ns"].fill_null(0).to_numpy()
        return int(start_ns.min()), int(end_ns.max()), 0
    own = windows[windows["step"] == step]
    if own.empty:
        raise KeyError(step)
    row = own.iloc[0]
    start, end = int(row["start_ns"]), int(row["end_ns"])
    last = end if pd.isna(row["gpu_end_ns"]) else int(row["gpu_end_ns"])
    return start, max(end, last), start
