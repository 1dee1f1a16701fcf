"""The few numbers a run is told by: how many kernels a step has, how long they take, and how busy they keep the GPU."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from core.analysis.busy import step_windows
from core.analysis.groups import step_annotations
from core.analysis.spread import Spread, spread
from core.trace import Tables


@dataclass(frozen=True)
class Headline:
    """Of the profiled steps. `kernels_per_step` is None where the steps differ or there are none; times in µs.

    `busy_share` sets the GPU's busy time (union, profiled) against a step: `busy_of` says "unprofiled", or "profiled" where
    that one was the shorter, as it is at higher clocks. Both None where unknown.
    """

    steps: int
    kernels_per_step: int | None
    kernel_time_us: Spread | None
    gpu_busy_us: Spread | None
    busy_share: float | None
    busy_of: str | None


def headline(tables: Tables, unprofiled_step_us: float | None) -> Headline:
    """The headline of a run. `unprofiled_step_us` is the median step without the profiler, None where unknown."""
    windows = step_windows(tables)
    # Kernels that belong to no step (their launch is not in the trace) leave a step's numbers unknown, not 0.
    on_gpu = bool(windows["kernels"].sum() > 0)
    counts = set(windows["kernels"].tolist())
    busy = spread(windows["gpu_busy_us"].to_numpy()) if on_gpu else None
    step_us, busy_of = shorter_step(windows, unprofiled_step_us)
    share = min(busy.median / step_us, 1.0) if busy and step_us else None
    return Headline(
        steps=len(windows),
        kernels_per_step=counts.pop() if on_gpu and len(counts) == 1 else None,
        kernel_time_us=spread(windows["kernel_time_us"].dropna().to_numpy()) if on_gpu else None,
        gpu_busy_us=busy,
        busy_share=share,
        busy_of=busy_of if share is not None else None,
    )


def shorter_step(windows: pd.DataFrame, unprofiled_us: float | None) -> tuple[float | None, str]:
    """The step that busy times are held against, in µs, and which it is: the unprofiled one, or the median from GPU start to
    GPU start of the profiled ones where that is shorter. A profile can only make a step longer; a shorter one ran at higher
    clocks, as its kernels did."""
    starts_ns = windows["gpu_start_ns"].dropna().to_numpy(dtype="int64")
    profiled = spread((starts_ns[1:] - starts_ns[:-1]) / 1000) if len(starts_ns) > 1 else None
    if profiled is None or unprofiled_us is None or profiled.median >= unprofiled_us:
        return unprofiled_us, "unprofiled"
    return profiled.median, "profiled"


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
