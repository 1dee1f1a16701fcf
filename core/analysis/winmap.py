"""Who is ahead at each cell of a win map: a winner is named only where every round says so and nothing else explains it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median

from core.analysis.ledger import PointFacts, SeriesFacts
from core.analysis.numerics import TOLERANCES
from core.analysis.points import (
    NOISE,
    VARIES,
    clocks_apart,
    cpu_sets_pace,
    indices,
    products_range_us,
    speeds_apart,
    step_doubt,
)
from core.analysis.sizes import KERNEL_TIME, STEP_TIME, time_of, time_words
from core.analysis.wording import listed, percent, sizes_words, us_range

WINS, ALIKE, DEPENDS, UNKNOWN = "wins", "alike", "depends", "unknown"
ROUNDS_MIN = 3
#: The loosest number format's; a stricter one is a doubt of the point.
_TOLERANCE = max(TOLERANCES.values())


@dataclass(frozen=True)
class Side:
    """One backend at one cell: the medians of its sound rounds in µs, in their order, and what they were taken from; the
    largest of their peak memories in bytes (None: unknown). `why` says why some round does not count."""

    series: str
    title: str
    compiles: bool
    rounds_us: tuple[float, ...]
    median_us: float | None
    low_us: float | None
    high_us: float | None
    samples: int
    peak_bytes: int | None
    run_ids: tuple[str, ...]
    why: str | None


@dataclass(frozen=True)
class Cell:
    """One cell. `verdict` is WINS (then `winner` and `runner_up` are series, and `margin` is the share of the runner-up's
    median time that the winner's saves), ALIKE, DEPENDS on the compile, or UNKNOWN; `words` say it. `paced` says, of step
    times, that some of them wait for the CPU; `cause`, of an UNKNOWN one, the reason without its figures."""

    index: int
    values: tuple[int, ...]
    sizes: str
    verdict: str
    words: str
    sides: tuple[Side, ...]
    winner: str | None = None
    winner_title: str | None = None
    runner_up: str | None = None
    margin: float | None = None
    paced: bool = False
    cause: str | None = None


def win_map(series: Sequence[SeriesFacts], axes: Sequence[str], *, time: str) -> tuple[Cell, ...]:
    """A cell a position of the list, all series against each other by `time`: KERNEL_TIME or STEP_TIME."""
    return tuple(_cell(series, index, axes, time) for index in indices(series))


def _cell(series: Sequence[SeriesFacts], index: int, axes: Sequence[str], time: str) -> Cell:
    values = next(point.values for one in series for point in one.at(index))
    sides = tuple(_side(one, index, time) for one in series)
    sound = _sound(series, index)
    paced = time == STEP_TIME and any(map(cpu_sets_pace, sound))
    unknown = Cell(index, values, sizes_words(axes, values), UNKNOWN, "", sides, paced=paced)
    why = _why_unknown(series, sides, index)
    told = time_words(time, (point for one in series for point in one.at(index)))
    if why:
        cause, in_full = why
        return replace(unknown, words=f"unknown: {in_full}", cause=cause)
    moved = speeds_apart(sound) if time == KERNEL_TIME else None
    low_us, high_us = products_range_us(sound)
    return _judged(unknown, time, told, moved, high_us - low_us if moved else 0.0)


def _side(one: SeriesFacts, index: int, time: str) -> Side:
    points = one.at(index)
    problems = [_problem(point, time) for point in points]
    sound = [point for point, problem in zip(points, problems, strict=True) if problem is None]
    spreads = [found for point in sound if (found := time_of(point, time)) is not None]
    rounds = tuple(found.median for found in spreads)
    return Side(
        series=one.name,
        title=one.title,
        compiles=one.compiles,
        rounds_us=rounds,
        median_us=median(rounds) if rounds else None,
        low_us=min(rounds, default=None),
        high_us=max(rounds, default=None),
        samples=sum(found.n for found in spreads),
        peak_bytes=max(
            (point.peak_memory_bytes for point in sound if point.peak_memory_bytes is not None), default=None
        ),
        run_ids=tuple(point.run_id for point in points),
        why=next((problem for problem in problems if problem), None),
    )


def _problem(point: PointFacts, time: str) -> str | None:
    """Why the point's time does not count, in words."""
    if point.failure is not None:
        return f"failed: {point.failure}"
    if point.doubt is not None:
        return point.doubt
    if point.worst_error is not None and not (math.isfinite(point.worst_error) and point.worst_error <= _TOLERANCE):
        return "what was computed is not the layer"
    if point.call is not None and point.call.ran_eager:
        return "it ran eager, without compiled code"
    found = time_of(point, time)
    if found is None:
        return f"its {time_words(time, (point,))} was not measured"
    if found.is_wide:
        return VARIES
    return step_doubt(point) if time == STEP_TIME or not point.on_gpu else None


def _why_unknown(series: Sequence[SeriesFacts], sides: Sequence[Side], index: int) -> tuple[str, str] | None:
    """The cause, as other cells may share it, and the same with what is this cell's alone."""
    for one in series:
        failure = next((point.failure for point in one.at(index) if point.failure is not None), None)
        if failure is not None:
            return f"{one.title} failed", f"{one.title} failed: {failure}"
    few = [side for side in sides if len(side.rounds_us) < ROUNDS_MIN]
    if few:
        whys = list(dict.fromkeys(side.why for side in few if side.why))
        left = [f"{len(side.rounds_us)} of the {ROUNDS_MIN} rounds of {side.title}" for side in few]
        because = f" ({'; '.join(whys)})" if whys else ""
        cause = listed([why.partition(":")[0] for why in whys]) if whys else "rounds are missing"
        return cause, f"only {listed(left)} count{because}"
    if len(sides) < 2:
        alone = "there is nothing to compare it with"
        return alone, alone
    sound = _sound(series, index)
    devices = {point.device for point in sound}
    if len(devices) > 1:
        return "the devices differ", f"the devices differ ({', '.join(sorted(devices))})"
    clocks = clocks_apart(sound)
    return None if clocks is None else (clocks.partition(" (")[0], clocks)


def _sound(series: Sequence[SeriesFacts], index: int) -> list[PointFacts]:
    return [point for one in series for point in one.at(index) if point.doubt is None]


def _judged(cell: Cell, time: str, told: str, moved: str | None, moved_us: float) -> Cell:
    """The cell with its verdict. `moved` says that the device changed its speed, which alone makes `moved_us`: then no compile
    is called unlucky, and only a wider gap is somebody's."""
    ordered = sorted(cell.sides, key=lambda side: side.median_us or 0.0)
    first, second = ordered[0], ordered[1]
    gap_us = min(_low(side) for side in ordered[1:]) - _high(first)
    if gap_us > max(NOISE * _high(first), moved_us) and first.median_us and second.median_us:
        margin = 1 - first.median_us / second.median_us
        return replace(
            cell,
            verdict=WINS,
            words=f"{first.title}: {percent(margin)} less {told} than {second.title}, {_times(first)} against {_times(second)}",
            winner=first.series,
            winner_title=first.title,
            runner_up=second.series,
            margin=margin,
        )
    in_front = [side for side in ordered if _low(side) <= min(map(_high, ordered)) * (1 + NOISE)]
    straddled = (
        _straddled(in_front) if time == KERNEL_TIME and not moved else None
    )  # a step also varies by what the host does
    if straddled:
        lucky, other = straddled
        words = (
            f"it depends on the compile: {lucky.title} takes {_times(lucky)} over its {len(lucky.rounds_us)} cold "
            f"compiles, {other.title} {_times(other)}"
        )
        return replace(cell, verdict=DEPENDS, words=words)
    who = "; ".join(f"{side.title} {_times(side)}" for side in in_front)
    behind = [side.title for side in ordered if side not in in_front]
    slower = f"; slower: {listed(behind)}" if behind else ""
    also = f"; {moved}" if moved else ""
    return replace(cell, verdict=ALIKE, words=f"nobody is ahead beyond the noise: {who}{slower}{also}")


def _straddled(in_front: Sequence[Side]) -> tuple[Side, Side] | None:
    """A compiling backend that came out faster than another one in some compile, and slower in another."""
    pairs = ((one, other) for one in in_front for other in in_front if one.compiles and one is not other)
    return next(
        (
            (one, other)
            for one, other in pairs
            if _low(one) * (1 + NOISE) < _low(other) and _high(other) * (1 + NOISE) < _high(one)
        ),
        None,
    )


def _low(side: Side) -> float:
    return min(side.rounds_us)


def _high(side: Side) -> float:
    return max(side.rounds_us)


def _times(side: Side) -> str:
    return us_range(_low(side), _high(side))
