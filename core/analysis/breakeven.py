"""After how many calls a compile has paid for itself: seconds lost to compiling against time won a call."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from core.analysis.ledger import Call, PointFacts, SeriesFacts
from core.analysis.points import (
    NOISE,
    STEPS_MIN,
    VARIES,
    apart,
    cpu_sets_pace,
    first_round,
    indices,
    is_noise,
    named,
    plain_series,
    step_doubt,
    unsteady,
)
from core.analysis.spread import Spread
from core.analysis.wording import about, counted, seconds, sizes_words, us

#: A list is judged where at least so many of its calls can be compared.
_SHARE_MIN = 0.5
PAYS, AT_ONCE, UNTIL, NEVER, ALIKE, UNKNOWN = "pays", "at once", "until", "never", "alike", "unknown"


@dataclass(frozen=True)
class PayBack:
    """One size of one series against another one. `lost_s` is what compiling cost here beyond the other's, `won_us` what a
    call saves (negative: what it loses), between `won_low_us` and `won_high_us` by the quartiles of the steps. `calls` is
    the number of calls after which both are even: set where `verdict` is PAYS (ahead from then on) or UNTIL (behind from then
    on)."""

    series: str
    title: str
    against: str
    run_id: str | None
    index: int
    values: tuple[int, ...]
    sizes: str
    count: int
    verdict: str
    words: str
    lost_s: float | None = None
    won_us: float | None = None
    won_low_us: float | None = None
    won_high_us: float | None = None
    calls: int | None = None


@dataclass(frozen=True)
class PayBackOfList:
    """The whole list of one series against another one: calls are drawn as the list has them. `won_us` is a mean call's,
    `calls` is between `calls_low` and `calls_high` by those quartiles. `known` of `sizes` sizes could
    be compared; `lost_s` and `won_us` are over these."""

    series: str
    title: str
    against: str
    against_title: str
    verdict: str
    words: str
    known: int
    sizes: int
    points: tuple[PayBack, ...]
    lost_s: float | None = None
    won_us: float | None = None
    won_low_us: float | None = None
    won_high_us: float | None = None
    calls: int | None = None
    calls_low: int | None = None
    calls_high: int | None = None


def lost_to_compiling_s(series: SeriesFacts, point: PointFacts) -> float | None:
    """Seconds beyond a step of that size that the first call took where it compiled anything, and the next calls where they
    recorded CUDA graphs; 0 where nothing of it happened, None: unknown."""
    is_hand_written = series.fuses and not series.compiles
    if point.call is None or (is_hand_written and point.call.jits is None):
        return None
    calls_s = _costly_calls_s(point.call)
    if not calls_s:
        return 0.0
    step_s = point.step_us.median / 1e6 if point.step_us is not None else None
    return None if step_s is None else sum(max(0.0, call_s - step_s) for call_s in calls_s)


def _costly_calls_s(call: Call) -> tuple[float, ...]:
    """Wall times of the calls at a size that compiled something or recorded CUDA graphs."""
    return (*((call.first_call_s,) if call.attempts or call.jits else ()), *call.graph_calls_s)


def lost_at_most_s(series: SeriesFacts, point: PointFacts) -> float | None:
    """As `lost_to_compiling_s`, but the whole of those calls where the step is not known."""
    if point.call is not None and point.step_us is None and (calls_s := _costly_calls_s(point.call)):
        return sum(calls_s)
    return lost_to_compiling_s(series, point)


def break_even(
    series: Sequence[SeriesFacts], axes: Sequence[str], against: str | None = None
) -> tuple[PayBackOfList, ...]:
    """Every other series against the one of that name (None: eager), in their order; empty where it is not there."""
    base = plain_series(series) if against is None else named(series, against)
    if base is None:
        return ()
    return tuple(_of_list(one, base, indices(series), axes) for one in series if one is not base)


def _of_list(one: SeriesFacts, base: SeriesFacts, at: Sequence[int], axes: Sequence[str]) -> PayBackOfList:
    points = tuple(row for index in at if (row := _at(one, base, index, axes)) is not None)
    known = [row for row in points if row.verdict != UNKNOWN]
    unknown = PayBackOfList(
        series=one.name,
        title=one.title,
        against=base.name,
        against_title=base.title,
        verdict=UNKNOWN,
        words=points[0].words if points else "unknown: nothing was measured",
        known=len(known),
        sizes=len(points),
        points=points,
    )
    if not known:
        return unknown
    if len(known) < _SHARE_MIN * len(points):
        why = next(row.words for row in points if row.verdict == UNKNOWN).removeprefix("unknown: ")
        few = f"unknown: {len(known)} of {counted(len(points), 'call')} can be compared, too few for the list ({why})"
        return replace(unknown, words=few)
    weight = sum(row.count for row in known)
    lost_s = sum(row.lost_s or 0.0 for row in points)  # what was compiled at an unknown call serves the others, too
    won, low, high = (
        sum(row.count * (getattr(row, name) or 0.0) for row in known) / weight
        for name in ("won_us", "won_low_us", "won_high_us")
    )
    of_base = sum(row.count * step.median for row in known if (step := _step(base, row.index))) / weight
    verdict, calls = _verdict(lost_s, won, is_alike=low <= 0 <= high or abs(won) <= NOISE * of_base)
    between = sorted(n for n in (_even(lost_s, low), _even(lost_s, high)) if n is not None) if calls is not None else []
    where = (
        f" (over {len(known)} of {counted(len(points), 'call')}: the others are unknown)"
        if len(known) < len(points)
        else ""
    )
    return replace(
        unknown,
        verdict=verdict,
        words=_paced((one, base), known)
        + _words(verdict, lost_s, won, calls, base.title, "as in the list", between)
        + where
        + _mixed(known),
        lost_s=lost_s,
        won_us=won,
        won_low_us=low,
        won_high_us=high,
        calls=calls,
        calls_low=between[0] if between else None,
        calls_high=between[-1] if between else None,
    )


def _paced(both: Sequence[SeriesFacts], rows: Sequence[PayBack]) -> str:
    """At how many of the sizes the CPU sets the pace of either, not the GPU: there a step tells of the host as much as of a
    kernel."""
    points = [[first_round(one, row.index) for one in both] for row in rows]
    slow = sum(any(point is not None and cpu_sets_pace(point) for point in pair) for pair in points)
    told = f"on the machine that measured this, whose CPU sets the pace at {slow} of {counted(len(points), 'call')}: "
    return told if slow else ""


def _mixed(rows: Sequence[PayBack]) -> str:
    """Where not all calls go the same way, how many go which: the sum alone would hide it."""
    ways = {"ahead": (PAYS, AT_ONCE), "behind": (NEVER, UNTIL), "alike": (ALIKE,)}
    counts = {way: sum(row.verdict in which for row in rows) for way, which in ways.items()}
    told = [f"{way} at {count}" for way, count in counts.items() if count]
    return f"; of these calls {', '.join(told)}" if len(told) > 1 else ""


def _step(series: SeriesFacts, index: int) -> Spread | None:
    point = first_round(series, index)
    return point.step_us if point else None


def _at(one: SeriesFacts, base: SeriesFacts, index: int, axes: Sequence[str]) -> PayBack | None:
    point, other = first_round(one, index), first_round(base, index)
    shown = point or other
    if shown is None:
        return None
    unknown = PayBack(
        series=one.name,
        title=one.title,
        against=base.name,
        run_id=point.run_id if point else None,
        index=index,
        values=shown.values,
        sizes=sizes_words(axes, shown.values),
        count=shown.count,
        verdict=UNKNOWN,
        words=f"unknown: {(base if point else one).title} was not measured here",
        lost_s=_net_s(one, point, base, other),
    )
    if point is None or other is None:
        return unknown
    lost_s, lost_by_other_s = lost_to_compiling_s(one, point), lost_to_compiling_s(base, other)
    why = (
        apart((point, other), (one.title, base.title))
        or _too_little(point, other, lost_s, lost_by_other_s)
        or step_doubt(point)
        or step_doubt(other)
        or unsteady(one, point)
        or unsteady(base, other)
    )
    if why or point.step_us is None or other.step_us is None or lost_s is None or lost_by_other_s is None:
        return replace(unknown, words=f"unknown: {why}")
    net_s, won = lost_s - lost_by_other_s, other.step_us.median - point.step_us.median
    verdict, calls = _verdict(net_s, won, is_alike=is_noise(point.step_us, other.step_us))
    ran_eager = "it ran eager here; " if point.call and point.call.ran_eager else ""
    return replace(
        unknown,
        verdict=verdict,
        words=ran_eager + _words(verdict, net_s, won, calls, base.title, "of this size", ()),
        lost_s=net_s,
        won_us=won,
        won_low_us=other.step_us.p25 - point.step_us.p75,
        won_high_us=other.step_us.p75 - point.step_us.p25,
        calls=calls,
    )


def _net_s(one: SeriesFacts, point: PointFacts | None, base: SeriesFacts, other: PointFacts | None) -> float | None:
    """What compiling cost where the steps cannot be compared; what the other's cost counts only where it is known."""
    lost_s = lost_at_most_s(one, point) if point else None
    by_other_s = lost_at_most_s(base, other) if other else None
    return None if lost_s is None else lost_s - (by_other_s or 0.0)


def _too_little(point: PointFacts, other: PointFacts, *lost_s: float | None) -> str | None:
    if point.step_us is None or other.step_us is None:
        return "the step was not measured"
    if None in lost_s:
        return "what its first call compiled was not recorded"
    if min(point.step_us.n, other.step_us.n) < STEPS_MIN:
        return f"fewer than {STEPS_MIN} steps were measured"
    return VARIES if point.step_us.is_wide or other.step_us.is_wide else None


def _verdict(lost_s: float, won_us: float, *, is_alike: bool) -> tuple[str, int | None]:
    if is_alike:
        return ALIKE, None
    if won_us > 0:
        return (AT_ONCE, None) if lost_s <= 0 else (PAYS, _even(lost_s, won_us))
    return (NEVER, None) if lost_s >= 0 else (UNTIL, _even(lost_s, won_us))


def _even(lost_s: float, won_us: float) -> int | None:
    """Calls after which seconds lost and time won are even, None where they never are."""
    calls = lost_s * 1e6 / won_us if won_us else -1.0
    return math.ceil(calls) if 0 <= calls < math.inf else None


def _words(
    verdict: str,
    lost_s: float,
    won_us: float,
    calls: int | None,
    base: str,
    which: str,
    between: Sequence[int],
) -> str:
    spread = f" ({about(between[0])} to {about(between[-1])} by the steps' quartiles)" if between else ""
    if verdict == ALIKE:
        lost = f", and first calls took {seconds(lost_s)} longer" if lost_s > 0 else ""
        return f"no difference of the step beyond the noise{lost}: no number of calls is named"
    if verdict == NEVER:
        return f"never pays back: a step takes {us(-won_us)} more than on {base}"
    if verdict == AT_ONCE:
        return f"ahead from the first call: it saves {us(won_us)} a call and lost no more to compiling"
    amount = f"{about(calls or 0)} {'call' if calls == 1 else 'calls'} {which}{spread}"
    if verdict == UNTIL:
        return f"ahead for {amount}, then behind: it compiled {seconds(-lost_s)} less and is slower by {us(-won_us)} a call"
    return f"pays back after {amount}: {seconds(lost_s)} lost to compiling, {us(won_us)} won a call"
