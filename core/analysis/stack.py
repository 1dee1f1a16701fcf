"""Runs of one layer on several backends, side by side: what each does of the layer, and what they say together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pandas as pd

from core.analysis.families import decode_gemm_name
from core.analysis.roles import RoleTime, role_times, work
from core.analysis.spread import Spread, spread
from core.roles import COPY, EXTRA_ROLES, FILL, Role
from core.trace import Tables

#: Times closer than this are told as alike: medians of the same kernel differ by as much from run to run.
ALIKE = 0.03
#: A profiled step that reaches so much further than the unprofiled one is told: its gaps are not the backend's.
_STRETCHED = 1.15
#: Clocks further apart than this are told: a slower clock is not a slower kernel.
CLOCKS_ALIKE = 0.02


@dataclass(frozen=True)
class StackedRun:
    """One run of the stack. `work` is that of `analysis.roles.work`; `kernel_time_us` sums a step's work; `step_us` is the
    unprofiled step; `draws_us` the smallest and largest activation time over the run's cold compiles, where it has any."""

    title: str
    work: pd.DataFrame
    roles: tuple[RoleTime, ...]
    kernel_time_us: Spread | None
    step_us: Spread | None
    device: str
    on_gpu: bool
    sm_mhz: float | None
    draws_us: tuple[float, float, int] | None = None

    def with_draws(self, draws_us: tuple[float, float, int] | None) -> StackedRun:
        """The same run with its cold compiles' range."""
        return replace(self, draws_us=draws_us)

    def time_of(self, role: Role) -> RoleTime | None:
        """What the run spends on a role, None where it launches nothing for it."""
        return next((one for one in self.roles if one.role == role), None)


def stacked_run(
    title: str,
    tables: Tables,
    roles: Sequence[Role],
    *,
    step_us: Spread | None,
    device: str,
    on_gpu: bool,
    sm_mhz: float | None = None,
) -> StackedRun:
    """A run's tables, read for the stack."""
    found = work(tables, roles)
    by_step = found.groupby("step")["dur_ns"].sum().to_numpy() / 1000
    return StackedRun(
        title=title,
        work=found,
        roles=role_times(found, roles),
        kernel_time_us=spread(by_step),
        step_us=step_us,
        device=device,
        on_gpu=on_gpu,
        sm_mhz=sm_mhz,
    )


def one_step(run: StackedRun, index: int) -> pd.DataFrame:
    """The work of the index-th profiled step (the last where there are fewer): columns of `work`, and start_us from the
    start of the step's first piece of work, dur_us, median_us, min_us, max_us and n of the same piece over all steps."""
    steps = sorted(set(run.work["step"]))
    if not steps:
        return run.work.assign(start_us=[], dur_us=[], median_us=[], min_us=[], max_us=[], n=[])
    numbered = run.work.assign(place=run.work.groupby("step").cumcount())
    own = numbered[numbered["step"] == steps[min(index, len(steps) - 1)]]
    over = numbered.groupby("place")["dur_ns"].agg(["median", "min", "max", "count"])
    told = own.join(over, on="place")
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
    """What stands between these runs beside their backend, a sentence each: devices and clocks that differ."""
    told = []
    devices = list(dict.fromkeys(run.device for run in runs))
    if len(devices) > 1:
        told.append(
            f"These runs are of different devices ({', '.join(devices)}): compare what they launch, not how long it takes."
        )
    clocks = [(run.sm_mhz, run.title) for run in runs if run.sm_mhz]
    if len(devices) == 1 and clocks and max(clocks)[0] / min(clocks)[0] > 1 + CLOCKS_ALIKE:
        (low, slow), (high, fast) = min(clocks), max(clocks)
        told.append(
            f"The clocks differ: {slow} ran at {low:,.0f} MHz, {fast} at {high:,.0f} MHz. A slower clock is not a slower kernel."
        )
    return tuple(told)


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


def remarks(runs: Sequence[StackedRun], roles: Sequence[Role]) -> tuple[str, ...]:
    """Three sentences on what the runs say together: the matrix products, what lies between them, and what is at stake.

    Fewer sentences where the layer or the runs have less to tell; none across different devices.
    """
    if len(runs) < 2 or len({run.device for run in runs}) > 1:
        return ()
    found = [_products(runs, roles), _between(runs, roles), _stake(runs, roles)]
    return tuple(one for one in found if one)


def _products(runs: Sequence[StackedRun], roles: Sequence[Role]) -> str | None:
    products = [role for role in roles if role.matmul]
    times = [[run.time_of(role) for role in products] for run in runs]
    if not products or not all(all(of_run) for of_run in times):
        return None
    names = [tuple(one.kernels for one in of_run if one) for of_run in times]
    first = [one for one in times[0] if one]
    shared = [
        f"{a.title} and {b.title} share one kernel"
        for a, b, one, two in zip(products, products[1:], first, first[1:], strict=False)
        if one.kernels == two.kernels
    ]
    sums = [sum(one.time_us.median for one in of_run if one) for of_run in times]
    took = (
        f"{min(sums):.1f} to {max(sums):.1f} µs a step" if max(sums) > min(sums) * 1.001 else f"{sums[0]:.1f} µs a step"
    )
    what = "The matrix product runs" if len(products) == 1 else f"The {len(products)} matrix products run"
    if len(set(names)) == 1:
        bias = _bias_words(first)
        return f"{what} as the same {'kernel' if len(products) == 1 else 'kernels'} everywhere ({took}){_and(shared)}{bias}."
    other = next(run.title for run, name in zip(runs, names, strict=True) if name != names[0])
    return f"{what} as other kernels on {other} than on {runs[0].title} ({took})."


def _bias_words(times: Sequence[RoleTime]) -> str:
    decoded = [decode_gemm_name(name) or "" for one in times for name in one.kernels]
    return (
        "; the bias is added in the epilogue, without a kernel of its own" if any("bias" in d for d in decoded) else ""
    )


def _and(parts: Sequence[str]) -> str:
    return f"; {', '.join(parts)}" if parts else ""


def _between(runs: Sequence[StackedRun], roles: Sequence[Role]) -> str | None:
    role = next((one for one in roles if not one.matmul), None)
    if role is None:
        return None
    told = []
    for run in runs:
        own = run.time_of(role)
        copies = next((one for one in run.roles if one.role.name == "copy"), None)
        also = f" and copies {copies.time_us.median:.1f} µs" if copies else ""
        if own is None:
            told.append(f"{run.title} launches none for it{also}")
            continue
        kernels = f"{own.per_step:g} {'kernel' if own.per_step == 1 else 'kernels'}"
        time = f"{own.time_us.median:.1f} µs"
        if run.draws_us is not None and run.draws_us[1] > run.draws_us[0] * (1 + ALIKE):
            time += f" here; {run.draws_us[0]:.1f} to {run.draws_us[1]:.1f} µs over its {run.draws_us[2]} cold compiles"
        told.append(f"{run.title} {kernels} ({time}){also}")
    return f"{role.title[0].upper()}{role.title[1:]}: {'; '.join(told)}."


def _stake(runs: Sequence[StackedRun], roles: Sequence[Role]) -> str | None:
    role = next((one for one in roles if not one.matmul), None)
    totals = [(run.kernel_time_us.median, run) for run in runs if run.kernel_time_us]
    if role is None or len(totals) < 2:
        return None
    largest, slow = max(totals, key=lambda pair: pair[0])
    least, fast = min(totals, key=lambda pair: pair[0])
    base_us, base = totals[0]
    own = base.time_of(role)
    share = own.time_us.median / base_us if own and base_us else 0.0
    stake = (
        f"All of the layer is at stake: it is one {role.title}"
        if share > 0.995
        else f"{share:.0%} of {base.title}'s kernel time is {role.title}: that is the part that fusing works on"
    )
    near = [(us, run) for us, run in totals if us <= least * (1 + ALIKE)]
    if len(near) == len(totals):
        return f"{stake}. The kernel times of a step are alike within {ALIKE:.0%} ({least:.1f} to {largest:.1f} µs)."
    names = " and ".join(run.title for _, run in near)
    most_near = max(us for us, _ in near)
    told = f"{least:.1f} µs" if len(near) == 1 else f"{least:.1f} to {most_near:.1f} µs, no difference beyond the noise"
    return (
        f"{stake}. {names} {'has' if len(near) == 1 else 'have'} the least kernel time a step, {told}; {slow.title} the most, "
        f"{largest:.1f} µs: {1 - least / largest:.0%} less.{_unlucky(near, totals)}{_steps_say(runs, fast)}"
    )


def _unlucky(near: Sequence[tuple[float, StackedRun]], totals: Sequence[tuple[float, StackedRun]]) -> str:
    """Where another cold compile of a front-runner would have been overtaken, that is said: one compile is an anecdote."""
    for us, run in near:
        shown = next(
            (one.time_us.median for one in run.roles if not one.role.matmul and one.role not in EXTRA_ROLES), None
        )
        if run.draws_us is None or shown is None:
            continue
        worst_us = us - shown + run.draws_us[1]
        ahead = [other.title for other_us, other in totals if other is not run and other_us * (1 + ALIKE) < worst_us]
        if worst_us > us * (1 + ALIKE) and ahead:
            return f" In the slowest of its compiles {run.title} would take {worst_us:.1f} µs, behind {' and '.join(ahead)}."
    return ""


def _steps_say(runs: Sequence[StackedRun], least_kernels: StackedRun) -> str:
    """Where the unprofiled steps tell another story than the kernels, that is said."""
    steps = [(run.step_us.median, run.title) for run in runs if run.step_us]
    if len(steps) < 2:
        return ""
    (best_us, best), (worst_us, _) = min(steps), max(steps)
    if worst_us <= best_us * (1 + ALIKE):
        return f" The whole steps, unprofiled, are alike ({best_us:.1f} to {worst_us:.1f} µs)."
    if best != least_kernels.title:
        own = least_kernels.step_us
        beside = f" ({least_kernels.title}: {own.median:.1f} µs)" if own else ""
        return (
            f" The whole step, unprofiled, is shortest on {best}, {best_us:.1f} µs{beside}: launching costs time, too."
        )
    return f" The whole step, unprofiled, is shortest there as well: {best_us:.1f} µs."


def all_roles(roles: Sequence[Role]) -> tuple[Role, ...]:
    """The layer's roles and those that any layer may have."""
    return (*roles, *EXTRA_ROLES)
