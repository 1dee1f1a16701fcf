"""What several runs of a layer say together, in sentences computed from them."""

from __future__ import annotations

from collections.abc import Sequence

from core.analysis.bound import OVERHEAD_BOUND
from core.analysis.families import decode_gemm_name
from core.analysis.roles import RoleTime
from core.analysis.stack import PRODUCTS_ALIKE, StackedRun, clocks_differ
from core.analysis.wording import listed
from core.roles import BACKWARD_MATMUL, BACKWARD_OTHER, COPY, EXTRA_ROLES, FILL, Role

#: Times closer than this are told as alike: medians of the same kernel differ by as much from run to run.
ALIKE = 0.03
#: Less than this share is not worth a sentence.
_SHARE_MIN = 0.01


def remarks(runs: Sequence[StackedRun], roles: Sequence[Role]) -> tuple[str, ...]:
    """Up to three sentences: on the matrix products, on what lies beside them, and on what is at stake.

    Runs whose times are in doubt are left out; there is nothing to say of fewer than two runs, or across devices.
    """
    sound = [run for run in runs if run.setting.doubt is None and run.work_us is not None]
    if len(sound) < 2 or len({run.setting.device for run in sound}) > 1:
        return ()
    where = "everywhere" if len(sound) == len(runs) else f"on {_names(sound)}"
    found = [_products(sound, roles, where), _beside(sound, roles), _stake(sound, roles)]
    return tuple(one for one in found if one)


def _products(runs: Sequence[StackedRun], roles: Sequence[Role], where: str) -> str | None:
    products = [role for role in roles if role.matmul]
    times = [[run.time_of(role) for role in products] for run in runs]
    if not products or not all(all(of_run) for of_run in times):
        return None
    names = [tuple(one.kernels for one in of_run if one) for of_run in times]
    took = _range([sum(one.time_us.median for one in of_run if one) for of_run in times]) + " a step"
    forward = "forward " if any(_is_training(run) for run in runs) else ""
    what = (
        f"The {forward}matrix product runs"
        if len(products) == 1
        else f"The {len(products)} {forward}matrix products run"
    )
    if len(set(names)) == 1:
        first = [one for one in times[0] if one]
        same = _noun(runs) + ("" if len(products) == 1 else "s")
        shared = _shared(products, first) if runs[0].setting.on_gpu else ""
        return f"{what} as the same {same} {where} ({took}){shared}{_bias_words(first)}."
    others = [run for run, name in zip(runs, names, strict=True) if name != names[0]]
    return f"{what} as other {_noun(runs)}s on {_names(others)} than on {runs[0].title} ({took})."


def _shared(products: Sequence[Role], times: Sequence[RoleTime]) -> str:
    """Which matrix products run as one and the same kernel, in words."""
    by_kernel: dict[tuple[str, ...], list[str]] = {}
    for role, one in zip(products, times, strict=True):
        by_kernel.setdefault(one.kernels, []).append(role.title)
    told = [f"{listed(titles)} share one kernel" for titles in by_kernel.values() if len(titles) > 1]
    return f"; {', '.join(told)}" if told else ""


def _bias_words(times: Sequence[RoleTime]) -> str:
    decoded = [decode_gemm_name(name) or "" for one in times for name in one.kernels]
    return (
        "; the bias is added in the epilogue, without a kernel of its own" if any("bias" in d for d in decoded) else ""
    )


def _beside(runs: Sequence[StackedRun], roles: Sequence[Role]) -> str | None:
    """The layer's other work by itself; with a backward pass all that is no matrix product, for who does what in which of
    the two passes differs from one backend to the next."""
    if any(_is_training(run) for run in runs):
        return _all_but_products(runs, roles)
    role = next((one for one in roles if not one.matmul), None)
    if role is None or all(run.time_of(role) is None for run in runs):
        return None
    told = []
    for run in runs:
        own, copies = run.time_of(role), run.time_of(COPY)
        also = f" and copies {copies.time_us.median:.1f} µs" if copies else ""
        if own is None:
            told.append(f"{run.title} launches none for it{also}")
            continue
        time = f"{own.time_us.median:.1f} µs"
        if run.draws_us is not None and run.draws_us[1] > run.draws_us[0] * (1 + ALIKE):
            time += f" here; {run.draws_us[0]:.1f} to {run.draws_us[1]:.1f} µs over its {run.draws_us[2]} cold compiles"
        told.append(f"{run.title} {_pieces(own.per_step, runs)} ({time}){also}")
    return f"{role.title[0].upper()}{role.title[1:]}: {'; '.join(told)}."


def _all_but_products(runs: Sequence[StackedRun], roles: Sequence[Role]) -> str | None:
    products = {role.name for role in (*roles, BACKWARD_MATMUL) if role.matmul}
    told = []
    for run in runs:
        own = run.work[~run.work["role"].isin(products)]
        steps = run.work["step"].nunique()
        by_step = own.groupby("step")["dur_ns"].sum() / 1000
        told.append(f"{run.title} {_pieces(len(own) / steps, runs)} ({by_step.median() if len(own) else 0.0:.1f} µs)")
    what = "All but the matrix products, both passes" if any(role.matmul for role in roles) else "Both passes"
    return f"{what}: {'; '.join(told)}."


def _pieces(per_step: float, runs: Sequence[StackedRun]) -> str:
    noun = "piece of work" if any(_is_training(run) for run in runs) else _noun(runs)
    many = noun.replace("piece", "pieces") if " " in noun else f"{noun}s"
    return f"{per_step:g} {noun if per_step == 1 else many}"


def _stake(runs: Sequence[StackedRun], roles: Sequence[Role]) -> str:
    what = "GPU work" if runs[0].setting.on_gpu else "work"
    if clocks_differ(runs):
        return f"{_share_words(runs[0], what)}Their clocks differ, so none of them is called the fastest."
    apart = _same_products_apart(runs, roles)
    if apart:
        return f"{_share_words(runs[0], what)}{apart}"
    totals = [(run.work_us.median, run) for run in runs if run.work_us]
    largest, slow = max(totals, key=lambda pair: pair[0])
    least = min(us for us, _ in totals)
    share = _share_words(runs[0], what)
    near = [(us, run) for us, run in totals if us <= least * (1 + ALIKE)]
    if len(near) == len(totals):
        told = f"The {what} of a step is alike within {ALIKE:.0%} ({_range([us for us, _ in totals])})."
        return f"{share}{told}{_steps(runs, [run for _, run in near])}"
    noise = "" if len(near) == 1 else ", no difference beyond the noise"
    return (
        f"{share}{_names([run for _, run in near])} {'has' if len(near) == 1 else 'have'} the least {what} a step, "
        f"{_range([us for us, _ in near])}{noise}; {slow.title} the most, {largest:.1f} µs: {1 - least / largest:.0%} less."
        f"{_unlucky(near, totals)}{_steps(runs, [run for _, run in near])}"
    )


def _same_products_apart(runs: Sequence[StackedRun], roles: Sequence[Role]) -> str:
    """Where the very same matrix products took other times from run to run, the clocks must have moved within the profiles,
    between the readings: in words, empty where they did not."""
    times = [[one for role in roles if role.matmul and (one := run.time_of(role))] for run in runs]
    sums = [sum(one.time_us.median for one in of_run) for of_run in times]
    same = len({tuple(one.kernels for one in of_run) for of_run in times}) == 1
    if not same or not min(sums) or max(sums) <= min(sums) * (1 + PRODUCTS_ALIKE):
        return ""
    return (
        f"The same matrix products took {_range(sums)}, so the clocks moved within the profiles, and none of the runs is called "
        "the fastest."
    )


def _share_words(base: StackedRun, what: str) -> str:
    """How much of an unfused run is no matrix product, where it has both: what fusing works on. Fills are a GEMM's own."""
    if base.fuses or base.work_us is None:
        return ""
    whole = sum(one.time_us.median for one in base.roles if one.role != FILL)
    products = sum(one.time_us.median for one in base.roles if one.role.matmul)
    share = 1 - products / whole if products and whole else 0.0
    if share < _SHARE_MIN:
        return ""
    return f"{share:.0%} of {base.title}'s {what} is no matrix product: the part that fusing works on. "


def _unlucky(near: Sequence[tuple[float, StackedRun]], totals: Sequence[tuple[float, StackedRun]]) -> str:
    """Where another cold compile of a front-runner would have been overtaken, that is said: one compile is an anecdote."""
    for us, run in near:
        own = [one for one in run.roles if not one.role.matmul and one.role not in EXTRA_ROLES]
        if run.draws_us is None or not own:
            continue
        worst_us = us - own[0].time_us.median + run.draws_us[1]
        ahead = [other for other_us, other in totals if other is not run and other_us * (1 + ALIKE) < worst_us]
        if worst_us > us * (1 + ALIKE) and ahead:
            return f" In the slowest of its compiles {run.title} would take {worst_us:.1f} µs, behind {_names(ahead)}."
    return ""


def _steps(runs: Sequence[StackedRun], least_work: Sequence[StackedRun]) -> str:
    """What the unprofiled steps say beside the work: the same front-runners, others, or no difference."""
    unsound = [run for run in runs if not run.step_is_sound]
    if unsound:
        return (
            f" The unprofiled steps are not compared: those of {_names(unsound)} vary widely, or ran at lower clocks."
        )
    steps = [(run.step_us.median, run) for run in runs if run.step_us]
    best_us = min(us for us, _ in steps)
    near = [(us, run) for us, run in steps if us <= best_us * (1 + ALIKE)]
    times = _range([us for us, _ in near])
    if len(near) == len(steps):
        return f" The whole steps, unprofiled, are alike ({times}).{_waits(least_work)}"
    told = f" The whole step, unprofiled, is shortest on {_names([run for _, run in near])}, {times}"
    behind = [(us, run) for us, run in steps if run in least_work and us > best_us * (1 + ALIKE)]
    if len(behind) < len(least_work):
        return f"{told}."
    beside = "; ".join(f"{run.title}: {us:.1f} µs" for us, run in behind)
    return f"{told} ({beside}): what lies between the pieces of work counts, too."


def _waits(runs: Sequence[StackedRun]) -> str:
    """Why less work is no shorter step, where that is so: it is launched no faster."""
    waiting = [run for run in runs if run.bound.verdict == OVERHEAD_BOUND and not run.bound.reads_back]
    if not waiting:
        return ""
    run = waiting[0]
    return f" {run.title} waits for launches: the GPU works for {run.bound.busy_share or 0.0:.0%} of its step."


def _is_training(run: StackedRun) -> bool:
    return any(one.role in (BACKWARD_MATMUL, BACKWARD_OTHER) for one in run.roles)


def _names(runs: Sequence[StackedRun]) -> str:
    return listed([run.title for run in runs])


def _range(times_us: Sequence[float]) -> str:
    """ "161.6 to 166.7 µs", or one time where they read the same."""
    low, high = f"{min(times_us):.1f}", f"{max(times_us):.1f}"
    return f"{low} µs" if low == high else f"{low} to {high} µs"


def _noun(runs: Sequence[StackedRun]) -> str:
    return "kernel" if runs[0].setting.on_gpu else "operator"
