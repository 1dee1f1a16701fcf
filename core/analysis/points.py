"""Which points of a sweep may be set beside each other, and when their times differ by more than the noise."""

from __future__ import annotations

from collections.abc import Sequence

from core.analysis.ledger import PointFacts, SeriesFacts
from core.analysis.spread import Spread
from core.analysis.stack import CLOCKS_ALIKE, PRODUCTS_ALIKE
from core.analysis.wording import us

#: Times closer than this are no difference: medians of the very same kernel differ by as much from run to run.
NOISE = 0.02
#: The profiler's own grain: shorter differences say nothing of a kernel of few microseconds.
_NOISE_US = 0.1
#: Fewer steps than these say nothing of their own spread.
STEPS_MIN = 3
#: What is said of times whose very middle half is wide.
VARIES = "the times vary widely: something else may have been at work on the machine"
#: A step that takes so much longer than its kernels waits for the CPU.
PACED = 1.3
#: Gaps between the kernels of a step make some microseconds; what exceeds these is of another kind.
OUTLASTS, GAPS_US = 1.05, 30.0
#: Repeats of the same call may differ by as much before their host is called unsteady.
STEADY = 1.25
#: Short matrix products differ by as many microseconds from run to run at the same speed of the device.
PRODUCTS_ALIKE_US = 1.0
BUSY_HOST = "other sweeps were measured in turns with this one and shared the CPU, which sets the pace there"


def apart(points: Sequence[PointFacts], titles: Sequence[str]) -> str | None:
    """Why the times of these points must not be compared, in words; None where they may be. `titles` name them."""
    for point, title in zip(points, titles, strict=True):
        if point.failure is not None:
            return f"{title} failed: {point.failure}"
        if point.doubt is not None:
            return f"{title}: {point.doubt}"
        if point.beside_others and not point.on_gpu:  # all of its times are the CPU's
            return BUSY_HOST
    devices = list(dict.fromkeys(point.device for point in points))
    if len(devices) > 1:
        return f"the devices differ ({', '.join(devices)})"
    return clocks_apart(points)


def kernels_apart(points: Sequence[PointFacts], titles: Sequence[str]) -> str | None:
    """Why the kernel times of these points must not be compared, in words; None where they may be."""
    return apart(points, titles) or speeds_apart(points)


def speeds_apart(points: Sequence[PointFacts]) -> str | None:
    """Whether the device changed its speed between these profiles, in words. Clocks are read around a profile, and miss what
    happens within; the very same matrix products of the same sizes tell."""
    low, high = products_range_us(points)
    if high <= low * (1 + PRODUCTS_ALIKE) or high - low <= PRODUCTS_ALIKE_US:
        return None
    return f"the very same matrix products took {us(low)} and {us(high)}, so the device's speed changed within the profiles"


def products_range_us(points: Sequence[PointFacts]) -> tuple[float, float]:
    """The shortest and the longest time of the very same matrix products among these points: of the pair that is furthest
    apart where several kernels do them. 0 and 0 where no two points can be compared."""
    times: dict[object, list[float]] = {}
    for point in points:
        if point.products is not None and point.products.kernels:
            times.setdefault((point.values, point.products.kernels), []).append(point.products.time_us)
    ranges = [(min(own), max(own)) for own in times.values()]
    return max(ranges, key=lambda pair: pair[1] / pair[0], default=(0.0, 0.0))


def cpu_sets_pace(point: PointFacts) -> bool:
    """Whether a step on a GPU waits for the CPU: then it tells of the host as much as of its kernels."""
    step, kernels = point.step_us, point.kernel_time_us
    return point.on_gpu and step is not None and kernels is not None and step.median > PACED * kernels.median


def outlasts_kernels(point: PointFacts) -> bool:
    """Whether a step on a GPU takes clearly longer than its kernels although it does not wait for the CPU."""
    step, kernels = point.step_us, point.kernel_time_us
    if not point.on_gpu or step is None or kernels is None or cpu_sets_pace(point):
        return False
    return step.median > OUTLASTS * kernels.median and step.median - kernels.median > GAPS_US


def step_doubt(point: PointFacts) -> str | None:
    """Why the point's step time must not be set beside others although its kernel times may, in words; None where it may."""
    return BUSY_HOST if point.beside_others and (cpu_sets_pace(point) or not point.on_gpu) else None


def unsteady(series: SeriesFacts, point: PointFacts) -> str | None:
    """Whether the very same call took quite another time at another position of the list, in words."""
    if point.step_us is None or point.call is None:
        return None
    for other in series.points:
        if other is point or other.values != point.values or other.doubt is not None:
            continue
        if other.step_us is None or other.call is None:
            continue
        low, high = sorted((point.step_us.median, other.step_us.median))
        if other.call.served_by == point.call.served_by and high > STEADY * low:
            return f"{series.title} took {us(low)} and {us(high)} for the same call at different times"
    return None


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
    """Whether two times are alike: medians within NOISE or the clock's grain, or the middle halves of the samples overlap."""
    if abs(one.median - other.median) <= max(NOISE * max(one.median, other.median), _NOISE_US):
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
