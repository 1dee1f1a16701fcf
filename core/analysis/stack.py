"""Runs of one layer on several backends, side by side: what each does of the layer, and how a step of each looks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pandas as pd

from core.analysis.roles import RoleTime, role_times, work
from core.analysis.spread import Spread, spread
from core.roles import COPY, EXTRA_ROLES, FILL, Role
from core.trace import Tables

#: Clocks further apart than this are told: a slower clock is not a slower kernel.
CLOCKS_ALIKE = 0.02
#: A profiled step that reaches so much further than the unprofiled one is told: its gaps are not the backend's.
_STRETCHED = 1.15


@dataclass(frozen=True)
class Setting:
    """What a run's times stand on beside its backend. `sm_mhz` is None where the clock is unknown; `doubt` says in words
    why its times must not be compared at all, None where they may be."""

    device: str
    versions: str
    on_gpu: bool
    sm_mhz: float | None = None
    doubt: str | None = None


@dataclass(frozen=True)
class StackedRun:
    """One run of the stack. `work` is that of `analysis.roles.work`, `work_us` its sum a step; `step_us` is the unprofiled
    step; `fuses` says that the backend does neighbouring operators' work in one kernel; `draws_us` is the smallest and
    largest time of its generated kernel over the run's cold compiles, and their number."""

    title: str
    setting: Setting
    fuses: bool
    work: pd.DataFrame
    roles: tuple[RoleTime, ...]
    work_us: Spread | None
    step_us: Spread | None
    draws_us: tuple[float, float, int] | None = None

    def with_draws(self, draws_us: tuple[float, float, int] | None) -> StackedRun:
        """The same run with its cold compiles' range."""
        return replace(self, draws_us=draws_us)

    def time_of(self, role: Role) -> RoleTime | None:
        """What the run spends on a role, None where it launches nothing for it."""
        return next((one for one in self.roles if one.role == role), None)


def stacked_run(
    title: str, tables: Tables, roles: Sequence[Role], *, setting: Setting, fuses: bool, step_us: Spread | None
) -> StackedRun:
    """A run's tables, read for the stack."""
    found = work(tables, roles, on_gpu=setting.on_gpu)
    by_step = found.groupby("step")["dur_ns"].sum().to_numpy() / 1000
    return StackedRun(title, setting, fuses, found, role_times(found, roles), spread(by_step), step_us)


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
        told.append(f"Left out of the remarks: {titles}, for {doubt}.")
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
        clocks = [(run.setting.sm_mhz, run.title) for run in runs if run.setting.sm_mhz]
        (low, slow), (high, fast) = min(clocks), max(clocks)
        told.append(
            f"The clocks differ: {slow} ran at {low:,.0f} MHz, {fast} at {high:,.0f} MHz. A slower clock is not a slower kernel."
        )
    return tuple(told)


def clocks_differ(runs: Sequence[StackedRun]) -> bool:
    """Whether the runs were measured at clocks too far apart to compare their times."""
    known = [run.setting.sm_mhz for run in runs if run.setting.sm_mhz]
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
