"""Which points of a sweep may be set beside each other, and when their times differ by more than the noise."""

from __future__ import annotations

from collections.abc import Sequence

from core.analysis.ledger import PointFacts, SeriesFacts
from core.analysis.spread import Spread
from core.analysis.stack import CLOCKS_ALIKE

#: Times closer than this are no difference: medians of the very same kernel differ by as much from run to run.
NOISE = 0.02
#: Fewer steps than these say nothing of their own spread.
STEPS_MIN = 3
#: What is said of times whose very middle half is wide.
VARIES = "the times vary widely: something else was at work on the machine"


def is_sound(point: PointFacts) -> bool:
    """Whether the point was measured, and its times may be set beside others."""
    return point.failure is None and point.doubt is None


def apart(points: Sequence[PointFacts], titles: Sequence[str]) -> str | None:
    """Why the times of these points must not be compared, in words; None where they may be. `titles` name them."""
    for point, title in zip(points, titles, strict=True):
        if point.failure is not None:
            return f"{title} failed: {point.failure}"
        if point.doubt is not None:
            return f"{title}: {point.doubt}"
    devices = list(dict.fromkeys(point.device for point in points))
    if len(devices) > 1:
        return f"the devices differ ({', '.join(devices)})"
    return clocks_apart(points)


def clocks_apart(points: Sequence[PointFacts]) -> str | None:
    """Whether the clocks of these points are too far apart to compare their times, in words. On a CPU nobody reads them; on a
    GPU clocks that were not read may have been any."""
    read = [clock for point in points if point.on_gpu for clock in point.clocks_mhz]
    if any(point.on_gpu and not point.clocks_mhz for point in points):
        return "the clocks were not read"
    if read and max(read) > min(read) * (1 + CLOCKS_ALIKE):
        return f"the clocks differ ({min(read):,} to {max(read):,} MHz)"
    return None


def is_noise(one: Spread, other: Spread) -> bool:
    """Whether two times are alike: medians within NOISE, or the middle halves of the samples overlap."""
    if abs(one.median - other.median) <= NOISE * max(one.median, other.median):
        return True
    return one.p25 <= other.p75 and other.p25 <= one.p75


def first_round(series: SeriesFacts, index: int) -> PointFacts | None:
    """The series' point at a position of the list, None where it was not measured."""
    return next(iter(series.at(index)), None)


def indices(series: Sequence[SeriesFacts]) -> tuple[int, ...]:
    """The positions of the list at which any of the series was measured."""
    return tuple(sorted({point.index for one in series for point in one.points}))


def named(series: Sequence[SeriesFacts], name: str) -> SeriesFacts | None:
    """The series of that backend, None where there is none."""
    return next((one for one in series if one.name == name), None)


def plain_series(series: Sequence[SeriesFacts]) -> SeriesFacts | None:
    """The series that neither compiles nor fuses: eager PyTorch, what the others are held against; None where there is none."""
    return next((one for one in series if not one.compiles and not one.fuses), None)
