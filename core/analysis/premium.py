"""What leaving sizes open costs: kernels of dynamic shapes beside those compiled for one size, at the same size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from core.analysis.ledger import PointFacts, SeriesFacts
from core.analysis.points import PRODUCTS_ALIKE_US, VARIES, is_noise, kernels_apart
from core.analysis.recompiles import dynamic_entries
from core.analysis.spread import Spread
from core.analysis.wording import percent, sizes_words, us
from core.roles import Role

#: The backend whose compile starts static where it is left to PyTorch.
_LEFT_TO_PYTORCH = "compile"


@dataclass(frozen=True)
class Premium:
    """One role (None: all kernels of the step) at one point, compiled for open sizes and for this one. `ratio` is open over
    static, None where `words` says why it is unknown; `is_noise` says that both are alike."""

    run_id: str
    static_run_id: str
    series: str
    title: str
    static_series: str
    static_title: str
    index: int
    values: tuple[int, ...]
    sizes: str
    role: str | None
    role_title: str
    dynamic_us: Spread | None
    static_us: Spread | None
    ratio: float | None
    is_noise: bool
    words: str


def premium(
    series: Sequence[SeriesFacts], axes: Sequence[str], roles: Sequence[Role], *, shared: bool
) -> tuple[Premium, ...]:
    """The layer's roles that are no matrix products, and all kernels, at every point that ran compiled for open sizes on one
    series and for this size alone on another.

    The static side is a series with dynamic=False; where there is none and every size starts fresh (not `shared`),
    torch.compile left to itself. A point that ran eager is on neither side.
    """
    static = _static(series, shared=shared)
    if static is None:
        return ()
    wanted: list[Role | None] = [*(role for role in roles if not role.matmul), None]
    rows = []
    for one in series:
        if one is static or not one.compiles:
            continue
        left_open = dynamic_entries(one)
        for point in one.points:
            other = _static_point(static, point)
            if other is not None and _is_generated(point, other) and _ran_open(one, point, left_open):
                rows += [_row(one, static, point, other, axes, role) for role in wanted]
    return tuple(rows)


def _is_generated(*points: PointFacts) -> bool:
    """Whether all of them ran kernels that were generated for their sizes: a library's are none of open or closed sizes. (What
    a CPU's generated code takes is no operator's time.)"""
    return all(point.on_gpu and any(one.family == "fused" for one in point.kernels) for point in points)


def _static(series: Sequence[SeriesFacts], *, shared: bool) -> SeriesFacts | None:
    told = [one for one in series if one.compiles and one.dynamic is False]
    left = [one for one in series if not shared and one.name == _LEFT_TO_PYTORCH]
    return next(iter((*told, *left)), None)


def _static_point(static: SeriesFacts, point: PointFacts) -> PointFacts | None:
    own = (one for one in static.points if (one.index, one.round) == (point.index, point.round))
    left_open = dynamic_entries(static)  # dimensions that were marked dynamic are open in any backend
    return next(
        (one for one in own if one.call and one.call.served_by and not left_open & set(one.call.served_by)), None
    )


def _ran_open(series: SeriesFacts, point: PointFacts, left_open: frozenset[str]) -> bool:
    if point.call is None or not point.call.served_by:
        return False
    if series.dynamic is not None:
        return series.dynamic
    return series.name == _LEFT_TO_PYTORCH and any(entry in left_open for entry in point.call.served_by)


def _row(
    one: SeriesFacts,
    static: SeriesFacts,
    point: PointFacts,
    other: PointFacts,
    axes: Sequence[str],
    role: Role | None,
) -> Premium:
    dynamic_us, static_us = _time(point, role), _time(other, role)
    what = role.title if role else "all kernels"
    why = kernels_apart((point, other), (one.title, static.title))
    if dynamic_us is None or static_us is None:
        why = why or f"{(one if dynamic_us is None else static).title} has no time for it"
    elif dynamic_us.is_wide or static_us.is_wide:
        why = why or VARIES
    alike = why is None and dynamic_us is not None and static_us is not None and is_noise(dynamic_us, static_us)
    # The matrix products among all kernels are no premium.
    if role is None and dynamic_us is not None and static_us is not None:
        alike = alike or (why is None and abs(dynamic_us.median - static_us.median) <= PRODUCTS_ALIKE_US)
    known = why is None and dynamic_us is not None and static_us is not None and static_us.median > 0
    ratio = dynamic_us.median / static_us.median if known and dynamic_us and static_us else None
    return Premium(
        run_id=point.run_id,
        static_run_id=other.run_id,
        series=one.name,
        title=one.title,
        static_series=static.name,
        static_title=static.title,
        index=point.index,
        values=point.values,
        sizes=sizes_words(axes, point.values),
        role=role.name if role else None,
        role_title=what,
        dynamic_us=dynamic_us,
        static_us=static_us,
        ratio=ratio,
        is_noise=alike,
        words=_words(what, dynamic_us, static_us, ratio, alike, why),
    )


def _time(point: PointFacts, role: Role | None) -> Spread | None:
    return point.kernel_time_us if role is None else point.role_us.get(role.name)


def _words(
    what: str, dynamic_us: Spread | None, static_us: Spread | None, ratio: float | None, alike: bool, why: str | None
) -> str:
    if ratio is None or dynamic_us is None or static_us is None:
        return f"{what}: unknown, {why or 'the static kernels took no time'}"
    open_words = f"{us(dynamic_us.median)} with sizes left open (n {dynamic_us.n})"
    times = f"{open_words}, {us(static_us.median)} for this size alone (n {static_us.n})"
    if alike:
        return f"{what}: no difference beyond the noise, {times}"
    return f"{what}: {percent(abs(ratio - 1))} {'more' if ratio > 1 else 'less'}, {times}"
