"""Whether the matrix products take the same time on all backends of a sweep, in sentences."""

from __future__ import annotations

import math
from collections.abc import Sequence

from core.analysis.ledger import PointFacts, SeriesFacts
from core.analysis.points import (
    NOISE,
    PRODUCTS_ALIKE_US,
    apart,
    first_round,
    indices,
    products_range_us,
    speeds_apart,
)
from core.analysis.stack import PRODUCTS_ALIKE
from core.analysis.wording import counted, listed, percent, sizes_words

ALL = "all backends"


def products(series: Sequence[SeriesFacts], axes: Sequence[str]) -> tuple[str, ...]:
    """Whether the matrix products take the same time on all backends, at every size where they can be compared; and where
    the device changed its speed instead."""
    compared, moved, single = [], [], []
    backends: list[set[str]] = []
    for index in indices(series):
        pairs = [(one, point) for one in series if (point := first_round(one, index)) and point.products is not None]
        points = [point for _, point in pairs]
        if len(points) < 2 or apart(points, [one.title for one, _ in pairs]) is not None:
            continue
        where = sizes_words(axes, points[0].values)
        if speeds_apart(points) is not None:
            low, high = products_range_us(points)
            moved.append((high / low - 1, where))
            continue
        sums = [point.products.time_us for point in points if point.products is not None]
        kernels = {point.products.kernels for point in points if point.products is not None}
        compared.append((max(sums) / min(sums) - 1, where, len(kernels) == 1 and kernels != {()}))
        backends.append({one.title for one, _ in pairs})
        single += [(share, role, where) for role, share in _by_role(points)]
    told = [_products_compared(compared, max(single, default=None), _who(series, backends))] if compared else []
    if moved:
        most, where = max(moved)
        told.append(
            f"The device changed its speed within the profiles at {len(moved)} of {counted(len(compared) + len(moved), 'call')}: "
            f"at {where} the very same matrix products took up to {percent(most)} longer on one backend than on another. "
            "Kernel times that this sets apart are not compared."
        )
    return tuple(told)


def _by_role(points: Sequence[PointFacts]) -> list[tuple[str, float]]:
    """How far apart each matrix product by itself is, as a share; a sum may hide it."""
    times: dict[str, list[float]] = {}
    for point in points:
        for role, role_us in point.products.role_us if point.products else ():
            times.setdefault(role, []).append(role_us)
    return [(role, max(own) / min(own) - 1) for role, own in times.items() if max(own) - min(own) > PRODUCTS_ALIKE_US]


def _who(series: Sequence[SeriesFacts], backends: Sequence[set[str]]) -> str:
    """Which backends were compared: all at every call, or some at some."""
    if all(len(one) == len(series) for one in backends):
        return ALL
    most = set.union(*backends)
    each = "" if all(one == most for one in backends) else ", not each at every call"
    return f"the backends that can be compared ({listed([one.title for one in series if one.title in most])}{each})"


def _products_compared(
    compared: Sequence[tuple[float, str, bool]], single: tuple[float, str, str] | None, who: str
) -> str:
    """In words how far apart they are together: share, where, and whether by the very same kernels, a call; and the one that
    by itself is furthest apart: share, role, where."""
    n = counted(len(compared), "call")
    others = [(share, where) for share, where, same in compared if not same and share > NOISE]
    if others:
        most, where = max(others)
        among = "backends" if who == ALL else who
        return (
            f"The matrix products differ by more than {NOISE:.0%} between {among} at {len(others)} of {n}, most at {where} "
            f"({percent(most)})."
        )
    same = " by the very same kernels" if all(same for *_, same in compared) else ""
    shares = [share for share, *_ in compared]
    within = max([NOISE, *(math.ceil(round(share * 100, 6)) / 100 for share in shares if share <= PRODUCTS_ALIKE)])
    alone = (
        f"; by itself, {single[1]} is up to {percent(single[0])} apart (at {single[2]})"
        if single and single[0] > within + 0.005
        else ""
    )
    short = f", {PRODUCTS_ALIKE_US:g} µs where they are short" if max(shares) > PRODUCTS_ALIKE else ""
    return f"The matrix products take the same time on {who} (within {within:.0%}{short}){same} at {n}{alone}."
