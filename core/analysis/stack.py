"""Runs of one layer on several backends, side by side: what each does of the layer, and how a step of each looks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from core.analysis.bound import Bound, bound_of
from core.analysis.compiles import KernelDraws, range_over_compiles
from core.analysis.headline import headline
from core.analysis.roles import RoleTime, role_times, work
from core.analysis.spread import Spread, spread
from core.roles import COPY, EXTRA_ROLES, FILL, Role
from core.trace import Tables

#: Clocks further apart than this are told: a slower clock is not a slower kernel.
CLOCKS_ALIKE = 0.02
#: The very same matrix products further apart than this ran at other speeds of the device, whatever clocks were read before
#: and after.
PRODUCTS_ALIKE = 0.05
#: A profiled step that reaches so much further than the unprofiled one is told: its gaps are not the backend's.
_STRETCHED = 1.15


@dataclass(frozen=True)
class Setting:
    """What a run's times stand on beside its backend: the readings of the SM clock around the profile in MHz (none where it
    is unknown), what held it down in words (None: nothing), and whether the steps settled, the layer was computed, and the
    protocol is this one."""

    device: str
    versions: str
    on_gpu: bool
    clocks_mhz: tuple[int, ...] = ()
    held_down: str | None = None
    is_settled: bool = True
    is_right: bool = True
    is_of_protocol: bool = True

    @property
    def doubt(self) -> str | None:
        """Why the run's times must not be set beside others, in words; None where they may be."""
        if not self.is_settled:
            return "the profiled steps never held the same kernels"
        if not self.is_right:
            return "what was computed is not the layer"
        if not self.is_of_protocol:
            return "it was measured by another protocol"
        if self.held_down is not None:
            return f"the clocks were {self.held_down}"
        if self.clocks_mhz and max(self.clocks_mhz) > min(self.clocks_mhz) * (1 + CLOCKS_ALIKE):
            return (
                f"the clock went between {min(self.clocks_mhz):,} and {max(self.clocks_mhz):,} MHz around the profile"
            )
        return None


@dataclass(frozen=True)
class StackedRun:
    """One run of the stack. `work` is that of `analysis.roles.work`, `work_us` its sum a step; `step_us` is the unprofiled
    step, and `step_is_sound` says that it neither varies widely nor ran at lower clocks than the profile; `bound` is what
    the step waits for. `fuses` says that the backend does neighbouring operators' work in one kernel; `draws_us` is the
    smallest and largest time of its generated kernel over the run's cold compiles, and their number."""

    title: str
    setting: Setting
    fuses: bool
    work: pd.DataFrame
    roles: tuple[RoleTime, ...]
    work_us: Spread | None
    step_us: Spread | None
    step_is_sound: bool
    bound: Bound
    draws_us: tuple[float, float, int] | None = None

    def time_of(self, role: Role) -> RoleTime | None:
        """What the run spends on a role, None where it launches nothing for it."""
        return next((one for one in self.roles if one.role == role), None)


def stacked_run(
    title: str,
    tables: Tables,
    roles: Sequence[Role],
    *,
    setting: Setting,
    fuses: bool,
    step_us: Spread | None,
    replay_us: Spread | None,
    compiles: Sequence[KernelDraws] = (),
) -> StackedRun:
    """A run's tables, read for the stack; `compiles` are its generated kernels over its cold compiles."""
    found = work(tables, roles, on_gpu=setting.on_gpu)
    by_step = found.groupby("step")["dur_ns"].sum().to_numpy() / 1000
    told = headline(tables, step_us.median if step_us else None)
    times = role_times(found, roles)
    other = next((one for one in times if not one.role.matmul and one.role in roles), None)
    return StackedRun(
        title=title,
        setting=setting,
        fuses=fuses,
        work=found,
        roles=times,
        work_us=spread(by_step),
        step_us=step_us,
        step_is_sound=step_us is not None and not step_us.is_wide and told.busy_of != "profiled",
        bound=bound_of(tables, told, step_us, replay_us),
        draws_us=range_over_compiles(compiles, other.kernels) if other else None,
    )


def step_count(run: StackedRun) -> int:
    """How many profiled steps hold work."""
    return int(run.work["step"].nunique())


def one_step(run: StackedRun, index: int) -> pd.DataFrame:
    """The work of the index-th profiled step (the last where there are fewer): columns of `work`, and start_us from the
    start of the step's first piece of work, dur_us, and median_us, min_us, max_us and n of the same piece over all steps:
    the same kernel, launched for the same time in its step."""
    steps = sorted(set(run.work["step"]))
    if not steps:
        return run.work.assign(start_us=[], dur_us=[], median_us=[], min_us=[], max_us=[], n=[])
    numbered = run.work.assign(time=run.work.groupby(["step", "name"]).cumcount())
    own = numbered[numbered["step"] == steps[min(index, len(steps) - 1)]]
    over = numbered.groupby(["name", "time"])["dur_ns"].agg(["median", "min", "max", "count"])
    told = own.join(over, on=["name", "time"])
    return own.assign(
        start_us=(own["start_ns"] - own["start_ns"].min()) / 1000,
        dur_us=own["dur_ns"] / 1000,
        median_us=told["median"] / 1000,
        min_us=told["min"] / 1000,
        max_us=told["max"] / 1000,
        n=told["count"],
    )


def counted(step: pd.DataFrame, noun: str) -> tuple[str, ...]:
    """How many pieces of work a step has, in words: "5 kernels", "2 fills"."""
    copies, fills = (int((step["role"] == role.name).sum()) for role in (COPY, FILL))
    of = ((len(step) - copies - fills, noun, f"{noun}s"), (copies, "copy", "copies"), (fills, "fill", "fills"))
    return tuple(f"{count} {one if count == 1 else many}" for count, one, many in of if count)


def unlike(runs: Sequence[StackedRun]) -> tuple[str, ...]:
    """What stands between these runs beside their backend, a sentence each: what differs, and whose times are in doubt."""
    told = []
    for doubt in dict.fromkeys(run.setting.doubt for run in runs if run.setting.doubt):
        titles = " and ".join(run.title for run in runs if run.setting.doubt == doubt)
        told.append(f"{titles}: compared with none of the others, for {doubt}.")
    devices = list(dict.fromkeys(run.setting.device for run in runs))
    if len(devices) > 1:
        told.append(
            f"These runs are of different devices ({', '.join(devices)}): compare what they launch, not how long it takes."
        )
        return tuple(told)
    versions = list(dict.fromkeys(run.setting.versions for run in runs))
    if len(versions) > 1:
        told.append(f"The software differs: {'; '.join(versions)}. Part of a difference may be theirs.")
    if clocks_differ(runs):
        clocks = [(min(run.setting.clocks_mhz), run.title) for run in runs if run.setting.clocks_mhz]
        (low, slow), (high, fast) = min(clocks), max(clocks)
        told.append(
            f"The clocks differ: {slow} ran at {low:,.0f} MHz, {fast} at {high:,.0f} MHz. A slower clock is not a slower kernel."
        )
    return tuple(told)


def clocks_differ(runs: Sequence[StackedRun]) -> bool:
    """Whether the runs were measured at clocks too far apart to compare their times."""
    known = [min(run.setting.clocks_mhz) for run in runs if run.setting.clocks_mhz]
    return bool(known) and max(known) / min(known) > 1 + CLOCKS_ALIKE


def gaps_of_the_profiler(runs: Sequence[StackedRun], index: int) -> str | None:
    """Which runs' steps reach further under the profiler than without it, in a sentence: their gaps may be the profiler's."""
    told = []
    for run in runs:
        step = one_step(run, index)
        if run.step_us is None or step.empty:
            continue
        span_us = float((step["start_us"] + step["dur_us"]).max())
        if span_us > run.step_us.median * _STRETCHED:
            told.append(
                f"{run.title} reaches over {span_us:,.0f} µs here and takes {run.step_us.median:,.0f} µs unprofiled"
            )
    if not told:
        return None
    return f"Launches take longer under the profiler, and gaps between kernels may be its own: {'; '.join(told)}."


def all_roles(roles: Sequence[Role]) -> tuple[Role, ...]:
    """The layer's roles and those that any layer may have."""
    return (*roles, *EXTRA_ROLES)
