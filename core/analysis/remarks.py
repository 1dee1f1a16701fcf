"""What several runs of a layer say together, in sentences computed from them."""

from __future__ import annotations

from collections.abc import Sequence

from core.analysis.families import decode_gemm_name
from core.analysis.roles import RoleTime
from core.analysis.stack import StackedRun, clocks_differ
from core.roles import EXTRA_ROLES, Role

#: Times closer than this are told as alike: medians of the same kernel differ by as much from run to run.
ALIKE = 0.03
#: Less than this share is not worth a sentence.
_SHARE_MIN = 0.01


def remarks(runs: Sequence[StackedRun], roles: Sequence[Role]) -> tuple[str, ...]:
    """Up to three sentences: on the matrix products, on what lies between them, and on what is at stake.

    Runs whose times are in doubt are left out; there is nothing to say of fewer than two runs, or across devices.
    """
    sound = [run for run in runs if run.setting.doubt is None and run.work_us is not None]
    if len(sound) < 2 or len({run.setting.device for run in sound}) > 1:
        return ()
    found = [_products(sound, roles), _between(sound, roles), _stake(sound)]
    return tuple(one for one in found if one)


def _products(runs: Sequence[StackedRun], roles: Sequence[Role]) -> str | None:
    products = [role for role in roles if role.matmul]
    times = [[run.time_of(role) for role in products] for run in runs]
    if not products or not all(all(of_run) for of_run in times):
        return None
    names = [tuple(one.kernels for one in of_run if one) for of_run in times]
    first = [one for one in times[0] if one]
    shared = [
        f"{a.title} and {b.title} share one {_noun(runs)}"
        for a, b, one, two in zip(products, products[1:], first, first[1:], strict=False)
        if one.kernels == two.kernels and runs[0].setting.on_gpu
    ]
    took = _range([sum(one.time_us.median for one in of_run if one) for of_run in times]) + " a step"
    what = "The matrix product runs" if len(products) == 1 else f"The {len(products)} matrix products run"
    if len(set(names)) == 1:
        same = _noun(runs) + ("" if len(products) == 1 else "s")
        return f"{what} as the same {same} everywhere ({took}){_and(shared)}{_bias_words(first)}."
    other = next(run.title for run, name in zip(runs, names, strict=True) if name != names[0])
    return f"{what} as other {_noun(runs)}s on {other} than on {runs[0].title} ({took})."


def _bias_words(times: Sequence[RoleTime]) -> str:
    decoded = [decode_gemm_name(name) or "" for one in times for name in one.kernels]
    return (
        "; the bias is added in the epilogue, without a kernel of its own" if any("bias" in d for d in decoded) else ""
    )


def _and(parts: Sequence[str]) -> str:
    return f"; {', '.join(parts)}" if parts else ""


def _between(runs: Sequence[StackedRun], roles: Sequence[Role]) -> str | None:
    role = next((one for one in roles if not one.matmul), None)
    if role is None or all(run.time_of(role) is None for run in runs):
        return None
    told = []
    for run in runs:
        own = run.time_of(role)
        copies = next((one for one in run.roles if one.role.name == "copy"), None)
        also = f" and copies {copies.time_us.median:.1f} µs" if copies else ""
        if own is None:
            told.append(f"{run.title} launches none for it{also}")
            continue
        pieces = f"{own.per_step:g} {_noun(runs)}{'' if own.per_step == 1 else 's'}"
        time = f"{own.time_us.median:.1f} µs"
        if run.draws_us is not None and run.draws_us[1] > run.draws_us[0] * (1 + ALIKE):
            time += f" here; {run.draws_us[0]:.1f} to {run.draws_us[1]:.1f} µs over its {run.draws_us[2]} cold compiles"
        told.append(f"{run.title} {pieces} ({time}){also}")
    return f"{role.title[0].upper()}{role.title[1:]}: {'; '.join(told)}."


def _stake(runs: Sequence[StackedRun]) -> str:
    what = "GPU work" if runs[0].setting.on_gpu else "work"
    if clocks_differ(runs):
        return f"{_share_words(runs[0], what)}Their clocks differ, so none of them is called the fastest."
    totals = [(run.work_us.median, run) for run in runs if run.work_us]
    largest, slow = max(totals, key=lambda pair: pair[0])
    least, fast = min(totals, key=lambda pair: pair[0])
    share = _share_words(runs[0], what)
    near = [(us, run) for us, run in totals if us <= least * (1 + ALIKE)]
    if len(near) == len(totals):
        told = f"The {what} of a step is alike within {ALIKE:.0%} ({_range([us for us, _ in totals])})."
        return f"{share}{told}{_steps(runs, fast)}"
    names = " and ".join(run.title for _, run in near)
    noise = "" if len(near) == 1 else ", no difference beyond the noise"
    return (
        f"{share}{names} {'has' if len(near) == 1 else 'have'} the least {what} a step, {_range([us for us, _ in near])}{noise}; "
        f"{slow.title} the most, {largest:.1f} µs: {1 - least / largest:.0%} less.{_unlucky(near, totals)}{_steps(runs, fast)}"
    )


def _share_words(base: StackedRun, what: str) -> str:
    """How much of an unfused run is no matrix product, where it has both: what fusing works on."""
    products = sum(one.time_us.median for one in base.roles if one.role.matmul)
    if base.fuses or not products or base.work_us is None:
        return ""
    share = max(0.0, 1 - products / base.work_us.median)
    if share < _SHARE_MIN:
        return f"Less than {_SHARE_MIN:.0%} of {base.title}'s {what} is anything but matrix products. "
    return f"{share:.0%} of {base.title}'s {what} is no matrix product: the part that fusing works on. "


def _unlucky(near: Sequence[tuple[float, StackedRun]], totals: Sequence[tuple[float, StackedRun]]) -> str:
    """Where another cold compile of a front-runner would have been overtaken, that is said: one compile is an anecdote."""
    for us, run in near:
        own = [one for one in run.roles if not one.role.matmul and one.role not in EXTRA_ROLES]
        if run.draws_us is None or not own:
            continue
        worst_us = us - own[0].time_us.median + run.draws_us[1]
        ahead = [other.title for other_us, other in totals if other is not run and other_us * (1 + ALIKE) < worst_us]
        if worst_us > us * (1 + ALIKE) and ahead:
            return f" In the slowest of its compiles {run.title} would take {worst_us:.1f} µs, behind {' and '.join(ahead)}."
    return ""


def _steps(runs: Sequence[StackedRun], least_work: StackedRun) -> str:
    """Where the unprofiled steps tell another story than the work, that is said."""
    steps = [(run.step_us.median, run) for run in runs if run.step_us]
    if len(steps) < len(runs):
        return ""
    best_us, best = min(steps, key=lambda pair: pair[0])
    if max(us for us, _ in steps) <= best_us * (1 + ALIKE):
        return f" The whole steps, unprofiled, are alike ({_range([us for us, _ in steps])}).{_waits(least_work)}"
    own_us = next(us for us, run in steps if run is least_work)
    if own_us <= best_us * (1 + ALIKE):
        return f" The whole step, unprofiled, is shortest there as well: {own_us:.1f} µs."
    return (
        f" The whole step, unprofiled, is shortest on {best.title}, {best_us:.1f} µs ({least_work.title}: {own_us:.1f} µs): "
        "what lies between the pieces of work counts, too."
    )


def _waits(run: StackedRun) -> str:
    """Why less work is no shorter step: it is launched no faster."""
    if (
        run.work_us is None
        or run.step_us is None
        or not run.setting.on_gpu
        or run.work_us.median > 0.9 * run.step_us.median
    ):
        return ""
    share = run.work_us.median / run.step_us.median
    return f" The work of {run.title} fills {share:.0%} of its step: the rest of the time the GPU waits for launches."


def _range(times_us: Sequence[float]) -> str:
    """ "161.6 to 166.7 µs", or one time where they read the same."""
    low, high = f"{min(times_us):.1f}", f"{max(times_us):.1f}"
    return f"{low} µs" if low == high else f"{low} to {high} µs"


def _noun(runs: Sequence[StackedRun]) -> str:
    return "kernel" if runs[0].setting.on_gpu else "operator"
