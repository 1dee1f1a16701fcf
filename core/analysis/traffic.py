"""A log of calls replayed: seconds and memory of each backend, what to use for it, and what change would turn the answer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from core.analysis.breakeven import lost_to_compiling_s
from core.analysis.ledger import PointFacts, SeriesFacts
from core.analysis.points import (
    NOISE,
    STEPS_MIN,
    VARIES,
    apart,
    cpu_sets_pace,
    indices,
    plain_series,
    step_doubt,
    unsteady,
)
from core.analysis.wording import about, counted, listed, percent, seconds, sizes_words

#: Rows that can be compared must hold this share of the calls for an answer.
_SHARE_MIN = 0.5


@dataclass(frozen=True)
class Seconds:
    """What the whole traffic costs: first call and (count - 1) times the median step, summed over its rows.

    `compiling_s` is the part lost to compiling and `working_s` the rest; `low_s` and `high_s` take the steps' quartiles instead
    of their medians. `fixed_s` is what does not grow with the traffic, `growing_s` what each further pass over all calls adds.
    """

    total_s: float
    low_s: float
    high_s: float
    compiling_s: float
    working_s: float
    fixed_s: float
    growing_s: float


@dataclass(frozen=True)
class Bill:
    """The traffic on one backend. `seconds` are None where `why` says why they are unknown, and not compared where there is a
    `doubt`. `peak_bytes` is the largest of its rows, None where one is unknown. `steps` is the smallest number of measured
    steps of a row, `eager_calls` are calls that a compiling backend silently ran eager, `failures` a sentence each. `how` says
    how the seconds were computed."""

    series: str
    title: str
    calls: int
    seconds: Seconds | None
    peak_bytes: int | None
    steps: int
    eager_calls: int | None
    failures: tuple[str, ...]
    why: str | None
    doubt: str | None
    how: str


@dataclass(frozen=True)
class Flip:
    """The same traffic `scale` times as often: from there (above 1: on, below 1: downwards) `title` is ahead."""

    title: str
    scale: float
    calls: int


@dataclass(frozen=True)
class Answer:
    """What to use for this traffic. `use` is a series, None where nothing can be said; `saved_s` is against eager, between
    `saved_low_s` and `saved_high_s` (None where eager was not measured, or is the answer)."""

    use: str | None
    sentence: str
    saved_s: float | None = None
    saved_low_s: float | None = None
    saved_high_s: float | None = None
    flip: Flip | None = None


def bills(series: Sequence[SeriesFacts], axes: Sequence[str], rows: int | None = None) -> tuple[Bill, ...]:
    """A bill a series, in their order. `rows` is how many the traffic has (None: as many as were measured by anyone)."""
    wanted = len(indices(series)) if rows is None else rows
    return tuple(_bill(one, axes, wanted) for one in series)


def answer(series: Sequence[SeriesFacts], axes: Sequence[str], rows: int | None = None) -> Answer:
    """What to use, in one sentence: what it saves against eager, how surely, and what would turn the answer.

    Backends whose seconds are unknown are left out, and so are the steps of rows at which a time is in doubt or clocks differ;
    both are said. What was compiled at such a row served the others, so it is counted all the same."""
    found = bills(series, axes, rows)
    known = {bill.series for bill in found if bill.seconds is not None}
    able = [one for one in series if one.name in known]
    beside = "".join(f" Left out: {bill.title} ({bill.why})." for bill in found if bill.series not in known)
    if not able:
        return Answer(None, f"What to use is unknown.{beside}" if beside else "Nothing was measured yet.")
    apart_at = {index: why for index in indices(able) if (why := _apart(able, index, axes))}
    alike = [replace(one, points=tuple(point for point in one.points if point.index not in apart_at)) for one in able]
    share = sum(point.count for point in alike[0].points) / sum(point.count for point in able[0].points)
    why = next(iter(apart_at.values()), "")
    if share < _SHARE_MIN:
        return Answer(None, f"What to use is unknown: {why}.{beside}")
    scope = ""
    if apart_at:
        part = f"{len(indices(alike))} of {counted(len(indices(able)), 'row')}"
        calls = percent(share) if share < 0.995 else "more than 99%"
        scope = f" for the {part} that can be compared ({calls} of the calls; all compiling counted)"
        first = "one of them " if len(apart_at) > 1 else ""
        beside = f" Left out on every backend: {counted(len(apart_at), 'row')}, {first}{why}.{beside}"
    spent = {
        one.name: sum(lost_to_compiling_s(one, point) or 0.0 for point in one.points if point.index in apart_at)
        for one in able
    }
    left = len(indices(alike))
    bills_left = [_bill(one, axes, left, compiled_elsewhere_s=spent[one.name]) for one in alike]
    costs = [(bill, bill.seconds) for bill in bills_left if bill.seconds is not None]
    if len(costs) == 1:
        ((bill, cost),) = costs
        return Answer(
            None,
            f"{bill.title}: {seconds(cost.total_s)}{scope or ' in all'}; there is nothing to compare it with.{beside}",
        )
    plain = plain_series(alike)
    base = next((pair for pair in costs if plain and pair[0].series == plain.name), None)
    judged = _judged(costs, base, left, scope)
    silent = next((bill.eager_calls for bill, _ in costs if bill.series == judged.use), None)
    eager = f" {silent:,} of its calls silently ran eager." if silent else ""
    return replace(judged, sentence=judged.sentence + eager + _paced(alike) + beside)


def _paced(series: Sequence[SeriesFacts]) -> str:
    """At how many rows the CPU sets the pace of some backend: what is said there is said of its host."""
    slow = {point.index for one in series for point in one.points if cpu_sets_pace(point)}
    if not slow:
        return ""
    rows = counted(len(indices(series)), "row")
    return f" At {len(slow)} of {rows} the measuring machine's CPU sets the pace of some backend: a faster CPU may turn that."


def _bill(one: SeriesFacts, axes: Sequence[str], rows: int, *, compiled_elsewhere_s: float = 0.0) -> Bill:
    points = one.points
    why = _why_unknown(one, axes, rows)
    doubts = [f"{sizes_words(axes, point.values)}: {point.doubt}" for point in points if point.doubt is not None]
    steps = min((point.step_us.n for point in points if point.step_us), default=0)
    peaks = [point.peak_memory_bytes for point in points if point.peak_memory_bytes is not None]
    calls = [(point.count, point.call) for point in points if point.call is not None]
    return Bill(
        series=one.name,
        title=one.title,
        calls=sum(point.count for point in points),
        seconds=None if why else _seconds(one, compiled_elsewhere_s),
        peak_bytes=max(peaks) if points and len(peaks) == len(points) else None,
        steps=steps,
        eager_calls=sum(count for count, call in calls if call.ran_eager) if len(calls) == len(points) else None,
        failures=tuple(f"{sizes_words(axes, point.values)}: {point.failure}" for point in points if point.failure),
        why=why,
        doubt=doubts[0] if doubts else None,
        how=f"computed: each size's first call, and (count - 1) times the median of at least "
        f"{counted(steps, 'measured step')}",
    )


def _why_unknown(one: SeriesFacts, axes: Sequence[str], rows: int) -> str | None:
    measured = len({point.index for point in one.points})
    if measured < rows or not rows:
        return f"{measured} of {counted(rows, 'row')} measured so far"
    for point in one.points:
        where = sizes_words(axes, point.values)
        if point.failure is not None:
            return f"it failed at {where}: {point.failure}"
        if point.call is None:
            return f"the first call at {where} was not recorded"
        if point.step_us is not None and lost_to_compiling_s(one, point) is None:
            return f"what the first call at {where} compiled was not recorded"
        if point.step_us is None:
            return f"the step at {where} was not measured"
        if point.step_us.n < STEPS_MIN:
            return f"fewer than {STEPS_MIN} steps were measured at {where}"
    return None


def _seconds(one: SeriesFacts, compiled_elsewhere_s: float) -> Seconds:
    made = [_as_called(point) for point in one.points]
    known = [(point, point.call, point.step_us) for point in made if point.call and point.step_us]
    recording_s = sum(  # the calls after the first are counted as steps below, and took so much longer
        max(0.0, call_s - step.median / 1e6) for _, call, step in known for call_s in call.graph_calls_s
    )
    first_s = sum(call.first_call_s for _, call, _ in known) + recording_s + compiled_elsewhere_s
    compiling_s = sum(lost_to_compiling_s(one, point) or 0.0 for point, _, _ in known) + compiled_elsewhere_s
    again_s = sum((point.count - 1) * step.median for point, _, step in known) / 1e6
    return Seconds(
        total_s=first_s + again_s,
        low_s=first_s + sum((point.count - 1) * step.p25 for point, _, step in known) / 1e6,
        high_s=first_s + sum((point.count - 1) * step.p75 for point, _, step in known) / 1e6,
        compiling_s=compiling_s,
        working_s=first_s + again_s - compiling_s,
        fixed_s=first_s - sum(step.median for _, _, step in known) / 1e6,
        growing_s=sum(point.count * step.median for point, _, step in known) / 1e6,
    )


def _as_called(point: PointFacts) -> PointFacts:
    """The point with as many calls that record CUDA graphs as the traffic makes at all."""
    if point.call is None:
        return point
    return replace(point, call=replace(point.call, graph_calls_s=point.call.graph_calls_s[: max(0, point.count - 1)]))


def _apart(able: Sequence[SeriesFacts], index: int, axes: Sequence[str]) -> str | None:
    """Why the times of a row must not be set beside each other, in words; None where they may be."""
    pairs = [(one, point) for one in able for point in one.at(index)]
    points = [point for _, point in pairs]
    doubts = (step_doubt(point) or unsteady(one, point) or _varies(one, point) for one, point in pairs)
    why = apart(points, [one.title for one, _ in pairs]) or next(filter(None, doubts), None)
    return f"at {sizes_words(axes, points[0].values)} {why}" if why else None


def _varies(one: SeriesFacts, point: PointFacts) -> str | None:
    return f"{one.title}: {VARIES}" if point.step_us is not None and point.step_us.is_wide else None


def _judged(able: Sequence[tuple[Bill, Seconds]], base: tuple[Bill, Seconds] | None, rows: int, scope: str) -> Answer:
    """The answer; `scope` says which part of the traffic it is for, "" for all of it."""
    best, cost = min(able, key=lambda pair: pair[1].total_s)
    others = [pair for pair in able if pair[0] is not best]
    alike = [bill for bill, other in others if _is_alike(cost, other)]
    stays = [base] if base is not None and base[0] in alike else []
    flip = _nearest_flip(best, cost, [pair for pair in others if pair not in stays], rows)
    turned = _flip_words(flip, best, cost)
    took = seconds(cost.total_s)
    if base is not None and base[0] in alike:
        who = listed([best.title, *(bill.title for bill in alike)])
        ahead = cost.growing_s < base[1].growing_s * (1 - NOISE)
        more = f"; the more of the same traffic, the more {best.title} is ahead" if ahead else turned
        sentence = (
            f"Stay with {base[0].title}: no difference beyond the noise between {who}, about {took}{scope}{more}."
        )
        return Answer(None, sentence, flip=flip)
    equal = f" (as good: {listed([bill.title for bill in alike])})" if alike else ""
    if base is None or base[0] is best:
        runner, runner_cost = min(others, key=lambda pair: pair[1].total_s)
        ratio = runner_cost.total_s / cost.total_s
        more = f"{_factor(ratio)} times as long" if ratio >= 2 else f"{percent(ratio - 1)} more"
        next_best = "" if alike else f", and {runner.title} would take {more}"
        return Answer(
            best.series, f"Use {best.title}{equal}: {took}{scope or ' in all'}{next_best}{turned}.", flip=flip
        )
    saved, low, high = _saved(cost, base[1])
    whole = base[1].total_s
    sentence = (
        f"Use {best.title}{equal}: it saves {seconds(saved)} of {base[0].title}'s {seconds(whole)}{scope}, "
        f"{percent(saved / whole)} ({seconds(low)} to {seconds(high)} by the steps' quartiles){turned}."
    )
    return Answer(best.series, sentence, saved, low, high, flip)


def _saved(best: Seconds, other: Seconds) -> tuple[float, float, float]:
    """Seconds that `best` saves: by the medians, at least and at most by the quartiles."""
    return other.total_s - best.total_s, other.low_s - best.high_s, other.high_s - best.low_s


def _is_alike(best: Seconds, other: Seconds) -> bool:
    saved, low, _ = _saved(best, other)
    return low <= 0 or saved <= NOISE * other.total_s


def _nearest_flip(best: Bill, cost: Seconds, others: Sequence[tuple[Bill, Seconds]], rows: int) -> Flip | None:
    """The least change of the traffic's amount that would put another backend ahead; each of its rows is called once at
    least, less traffic of the same rows there is not."""
    flips = [flip for bill, other in others if (flip := _flip(best, cost, bill, other, rows)) is not None]
    return min(flips, key=lambda flip: abs(math.log(flip.scale)), default=None)


def _flip(best: Bill, cost: Seconds, bill: Bill, other: Seconds, rows: int) -> Flip | None:
    growing_s = other.growing_s - cost.growing_s
    if abs(growing_s) <= NOISE * max(cost.growing_s, other.growing_s):
        return None
    scale = (cost.fixed_s - other.fixed_s) / growing_s
    calls = scale * best.calls
    return Flip(bill.title, scale, math.ceil(calls)) if rows <= calls < math.inf else None


def _flip_words(flip: Flip | None, best: Bill, cost: Seconds) -> str:
    if flip is None:
        return "; more or less of the same traffic would not turn that"
    if flip.scale < 1:
        because = f": compiling takes {seconds(cost.compiling_s)}" if cost.compiling_s else ""
        return f"; with fewer than {about(flip.calls)} of its {best.calls:,} calls it is {flip.title}{because}"
    return f"; from {_factor(flip.scale)} times the traffic on ({about(flip.calls)} calls) it is {flip.title}"


def _factor(ratio: float) -> str:
    return f"{ratio:.1f}" if ratio < 10 else about(ratio)
