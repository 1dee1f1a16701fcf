"""Times against size: each role's kernels at every size, and where a role's kernels change from one size to the next."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from core.analysis.families import short_name
from core.analysis.ledger import PointFacts, SeriesFacts
from core.analysis.points import VARIES
from core.analysis.spread import Spread
from core.analysis.wording import sizes_words
from core.roles import Role

#: What a time is of: the sum of a step's kernels, or the unprofiled step.
KERNEL_TIME, STEP_TIME = "kernel time", "step time"
_GRAPH = re.compile(r"^graph_\d+_")


@dataclass(frozen=True)
class SizeTime:
    """One time of one point: of a role, or (role None) of all its kernels or its step. `x` is the size along the axis, or
    the product of several. `kernels` are the role's, and `is_eager` says that a compiling backend ran no compiled code;
    `doubt` why the time must not be compared; `clock_mhz` the lowest reading of the SM clock while it was taken, None where
    nobody read it."""

    run_id: str
    series: str
    title: str
    index: int
    round: int
    values: tuple[int, ...]
    sizes: str
    x: int
    role: str | None
    time_us: Spread
    kernels: tuple[str, ...]
    is_eager: bool
    doubt: str | None
    clock_mhz: int | None


@dataclass(frozen=True)
class Memory:
    """The peak memory of one point's steps in bytes, and that of its first calls (None: the first holds both); `x` as in
    SizeTime."""

    run_id: str
    series: str
    title: str
    values: tuple[int, ...]
    sizes: str
    x: int
    peak_bytes: int
    first_call_bytes: int | None


@dataclass(frozen=True)
class KernelChange:
    """Where a role of one series runs as other kernels than at the next smaller size."""

    series: str
    title: str
    role: str
    role_title: str
    run_id: str
    before: str
    after: str
    kernels_before: tuple[str, ...]
    kernels_after: tuple[str, ...]
    words: str


def role_times(series: Sequence[SeriesFacts], axes: Sequence[str], roles: Sequence[Role]) -> tuple[SizeTime, ...]:
    """Times of these roles at every point that has them, in µs a step; series after series, each by size."""
    wanted = [role.name for role in roles]
    return tuple(
        _time(one, point, axes, name, point.role_us[name], _kernels(point, name), point.clocks_mhz)
        for one in series
        for point in _by_size(one)
        for name in wanted
        if name in point.role_us
    )


def whole_times(series: Sequence[SeriesFacts], axes: Sequence[str], which: str) -> tuple[SizeTime, ...]:
    """Kernel time a step (KERNEL_TIME) or the unprofiled step (STEP_TIME) of every point that has it, in µs."""
    return tuple(
        _time(
            one,
            point,
            axes,
            None,
            found,
            tuple(dict.fromkeys(kernel.name for kernel in point.kernels)),
            point.clocks_mhz if which == KERNEL_TIME else point.step_clocks_mhz,
        )
        for one in series
        for point in _by_size(one)
        if (found := time_of(point, which)) is not None
    )


def time_words(which: str, points: Iterable[PointFacts]) -> str:
    """What a time is called: a CPU run has no kernels, but operators."""
    return which if which == STEP_TIME or any(point.on_gpu for point in points) else "operator time"


def time_of(point: PointFacts, which: str) -> Spread | None:
    """The point's kernel time or step time."""
    return point.kernel_time_us if which == KERNEL_TIME else point.step_us


def memory(series: Sequence[SeriesFacts], axes: Sequence[str]) -> tuple[Memory, ...]:
    """Peak memory of every point where it is known."""
    return tuple(
        Memory(
            point.run_id,
            one.name,
            one.title,
            point.values,
            sizes_words(axes, point.values),
            math.prod(point.values),
            point.peak_memory_bytes,
            point.first_call_memory_bytes,
        )
        for one in series
        for point in _by_size(one)
        if point.peak_memory_bytes is not None
    )


def kernel_changes(
    series: Sequence[SeriesFacts], axes: Sequence[str], roles: Sequence[Role]
) -> tuple[KernelChange, ...]:
    """Every change of a role's kernels between neighbouring sizes, series after series and role after role: what a matrix
    product does when another tile suits the size better. Points without kernels are passed over."""
    found = []
    for one in series:
        measured = {point.values: point for point in _by_size(one) if point.failure is None and point.kernels}
        for role in roles:
            own = [(point, _kernels(point, role.name)) for point in measured.values()]
            for (before, were), (after, are) in pairwise(pair for pair in own if pair[1]):
                if were != are:
                    found.append(_change(one, role, axes, before, after, were, are))
    return tuple(found)


def _change(
    series: SeriesFacts,
    role: Role,
    axes: Sequence[str],
    before: PointFacts,
    after: PointFacts,
    were: tuple[str, ...],
    are: tuple[str, ...],
) -> KernelChange:
    old, new = sizes_words(axes, before.values), sizes_words(axes, after.values)
    return KernelChange(
        series=series.name,
        title=series.title,
        role=role.name,
        role_title=role.title,
        run_id=after.run_id,
        before=old,
        after=new,
        kernels_before=were,
        kernels_after=are,
        words=f"{role.title}: {_names(were)} at {old}, {_names(are)} at {new}",
    )


def _names(kernels: Sequence[str]) -> str:
    return " + ".join(short_name(name) for name in kernels)


def _kernels(point: PointFacts, role: str) -> tuple[str, ...]:
    # A generated C++ kernel carries the number of its graph, which every compile counts on.
    return tuple(sorted({_GRAPH.sub("", kernel.name) for kernel in point.kernels if kernel.role == role}))


def _by_size(series: SeriesFacts) -> list[PointFacts]:
    return sorted(series.points, key=lambda point: (math.prod(point.values), point.values, point.index, point.round))


def _time(
    series: SeriesFacts,
    point: PointFacts,
    axes: Sequence[str],
    role: str | None,
    time_us: Spread,
    kernels: tuple[str, ...],
    clocks_mhz: tuple[int, ...],
) -> SizeTime:
    return SizeTime(
        run_id=point.run_id,
        series=series.name,
        title=series.title,
        index=point.index,
        round=point.round,
        values=point.values,
        sizes=sizes_words(axes, point.values),
        x=math.prod(point.values),
        role=role,
        time_us=time_us,
        kernels=kernels,
        is_eager=point.call is not None and point.call.ran_eager,
        doubt=point.doubt or (VARIES if time_us.is_wide else None),
        clock_mhz=min(clocks_mhz, default=None),
    )
