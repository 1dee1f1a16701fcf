"""What a step waits for: the CPU that launches, or the GPU; and what the profiler adds to it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from core.analysis.busy import step_windows
from core.analysis.headline import Headline
from core.analysis.spread import Spread, spread
from core.trace import Tables, column, kind_mask

OVERHEAD_BOUND = "overhead-bound"
GPU_BOUND = "GPU-bound"
BETWEEN = "between the two"
UNKNOWN = "unknown"

# In a burst of steps the CPU runs ahead where it can, and the GPU never waits for it but in the few percent that lie
# between kernels. A tenth is as much as one step differs from the next.
GPU_BOUND_SHARE = 0.9
# A GPU that stands still for more than a quarter of a burst waits for launches: no gap between kernels adds up to that,
# unless the kernels are tiny, and then the replay tells.
OVERHEAD_BOUND_SHARE = 0.75
# Below, a replay that is no faster shows what launching the graph itself takes, not that the GPU is the limit.
_REPLAY_TELLS_FROM_SHARE = 0.5


@dataclass(frozen=True)
class Bound:
    """What binds a step, with the medians (µs) the verdict rests on; None for unknown. busy_share is at most 1, and of the
    step that busy_of names; reads_back says that the step copies values to the CPU in its middle."""

    verdict: str
    step_us: float | None
    busy_us: float | None
    busy_share: float | None
    replay_us: float | None
    kernels: int | None
    busy_of: str = "unprofiled"
    reads_back: bool = False


def bound_of(tables: Tables, found: Headline, step_us: Spread | None, replay_us: Spread | None) -> Bound:
    """The verdict on a run, from its trace and its headline."""
    names = tables.events.filter(kind_mask(tables.events, "memcpy") & (column(tables.events, "step") >= 0))["name"]
    reads_back = any(name.startswith("Memcpy DtoH") for name in names.unique().to_pylist())
    verdict = bound(step_us, found.gpu_busy_us, replay_us, found.kernels_per_step, busy_share=found.busy_share)
    return replace(verdict, busy_of=found.busy_of or "unprofiled", reads_back=reads_back)


def bound(
    step_us: Spread | None,
    busy_us: Spread | None,
    replay_us: Spread | None,
    kernels: int | None,
    *,
    busy_share: float | None = None,
) -> Bound:
    """The verdict from the unprofiled step, the GPU's busy time of a step (union, profiled), the CUDA-graph replay and
    how many kernels a step launches. `busy_share` is what the headline says, where that holds the busy time against another
    step than the unprofiled one; None to compute it from the two.

    GPU-bound from a busy share of 90% on, or where a replay, which spares the CPU the launching, takes 90% of the step
    or longer and the GPU is busy for at least half of it; overhead-bound below a share of 75%.
    """
    step = step_us.median if step_us else None
    busy = busy_us.median if busy_us else None
    replay = replay_us.median if replay_us else None
    share = busy_share if busy_share is not None else min(busy / step, 1.0) if step and busy is not None else None
    if share is None or step is None:
        verdict = UNKNOWN
    elif share >= GPU_BOUND_SHARE or (
        share >= _REPLAY_TELLS_FROM_SHARE and replay is not None and replay >= GPU_BOUND_SHARE * step
    ):
        verdict = GPU_BOUND
    else:
        verdict = OVERHEAD_BOUND if share < OVERHEAD_BOUND_SHARE else BETWEEN
    return Bound(verdict, step, busy, share, replay, kernels)


def sentence(found: Bound) -> str:
    """The verdict in words, with its numbers."""
    if found.step_us is None or found.busy_us is None or found.busy_share is None:
        missing = "the step without the profiler" if found.step_us is None else "the GPU's time"
        return f"What binds the step is unknown, because {missing} is."
    if found.kernels is None:
        work = "its GPU work"
    else:
        work = f"the GPU work of its {found.kernels} kernel{'' if found.kernels == 1 else 's'}"
    verdict = found.verdict[0].upper() + found.verdict[1:]
    why = {
        OVERHEAD_BOUND: "it reads values back in its middle, so that the CPU and the GPU wait for each other"
        if found.reads_back
        else "the CPU cannot launch fast enough",
        BETWEEN: "the GPU waits for part of it, so faster launching and faster kernels would both help",
        GPU_BOUND: "the CPU launches fast enough"
        if found.busy_share >= GPU_BOUND_SHARE
        else "the rest lies between kernels on the GPU itself, for sparing the launches gains little",
    }[found.verdict]
    of = "" if found.busy_of == "unprofiled" else f" of the {found.busy_of} step, which ran at higher clocks"
    told = f"{verdict}: a step takes {_us(found.step_us)}, {work} {_us(found.busy_us)} ({found.busy_share:.0%}{of}): {why}."
    return told if found.replay_us is None else f"{told} Replayed as a CUDA graph it takes {_us(found.replay_us)}."


@dataclass(frozen=True)
class ProfiledStep:
    """The step under the profiler (µs): from the start of one step to that of the next, on the CPU and on the GPU.

    inflation: the profiled median over the unprofiled one, on the side that the unprofiled step was taken on (`side`:
    "GPU" where it does work, else "CPU"); None where either is unknown.
    """

    cpu_us: Spread | None
    gpu_us: Spread | None
    side: str
    inflation: float | None

    @property
    def step_us(self) -> Spread | None:
        """The profiled step on the side that is compared."""
        return self.gpu_us if self.side == "GPU" else self.cpu_us


def profiled_step(tables: Tables, unprofiled_step_us: float | None) -> ProfiledStep:
    """Profiled steps beside the median unprofiled one. Only steps that follow each other count, so n is one less."""
    windows = step_windows(tables)
    side = "GPU" if kind_mask(tables.events, "kernel").any() else "CPU"
    cpu_us, gpu_us = _between_us(windows, "start_ns"), _between_us(windows, "gpu_start_ns")
    of_side = gpu_us if side == "GPU" else cpu_us
    inflation = of_side.median / unprofiled_step_us if of_side and unprofiled_step_us else None
    return ProfiledStep(cpu_us, gpu_us, side, inflation)


def inflation_sentence(found: ProfiledStep) -> str:
    """What the profiler does to the step, in words."""
    if found.inflation is None:
        return "How much the profiler slows the step down is unknown."
    if found.inflation < 1.05:
        slower = " The unprofiled steps ran at lower clocks." if found.inflation < 0.95 else ""
        return f"The profiler does not slow this step down ({found.inflation:.2f} times the unprofiled step).{slower}"
    keeps = ", and kernels keep their times" if found.side == "GPU" else ""
    return f"Under the profiler a step takes {found.inflation:.1f} times as long: it slows the CPU side down{keeps}."


def _between_us(windows: pd.DataFrame, name: str) -> Spread | None:
    steps, start_ns = windows["step"].to_numpy(np.int64), windows[name]
    follows = (np.diff(steps) == 1) & start_ns.notna().to_numpy()[1:] & start_ns.notna().to_numpy()[:-1]
    between_ns = np.diff(start_ns.fillna(0).to_numpy(np.int64))
    return spread(between_ns[follows] / 1000)


def _us(time_us: float) -> str:
    return f"{time_us:,.1f} µs"
