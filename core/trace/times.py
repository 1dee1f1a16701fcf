"""Times of a trace (microseconds, written in many ways) to exact int64 nanoseconds."""

from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

import numpy as np

# From here on a float64 no longer tells neighbouring nanoseconds apart when it counts microseconds.
FLOAT_IS_EXACT_BELOW_US = 2.0**43
_INT_IS_EXACT_BELOW_US = 2**53
# Differences and ends of such times still fit an int64 of nanoseconds.
_LARGEST_US = 3_000_000_000_000_000


def lost_digits(values: Sequence[Any]) -> bool:
    """Whether one of the decoded times (us) is a float too large to hold nanoseconds."""
    return any(type(value) is float and abs(value) >= FLOAT_IS_EXACT_BELOW_US for value in values)


def nanoseconds(values: Sequence[Any]) -> tuple[np.ndarray, np.ndarray]:
    """(int64 ns, bool usable) for times in us given as int, float, Decimal or text; unusable ones are 0."""
    if {type(value) for value in values} <= {int, float}:
        try:
            times_us = np.array(values, np.float64)
        except OverflowError:
            return _one_by_one(values)
        integers = all(type(value) is int for value in values)
        limit_us = _INT_IS_EXACT_BELOW_US if integers else FLOAT_IS_EXACT_BELOW_US
        if np.all(np.abs(times_us) < limit_us):
            whole_us = np.floor(times_us)
            fraction_ns = np.rint((times_us - whole_us) * 1000).astype(np.int64)
            return whole_us.astype(np.int64) * 1000 + fraction_ns, np.ones(len(values), bool)
    return _one_by_one(values)


def _one_by_one(values: Sequence[Any]) -> tuple[np.ndarray, np.ndarray]:
    exact = [_nanoseconds(value) for value in values]
    usable = np.array([value is not None for value in exact], bool)
    return np.array([value or 0 for value in exact], np.int64), usable


def _nanoseconds(value: Any) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str | Decimal):
        return None
    try:
        time_us = Decimal(value)
    except InvalidOperation:
        return None
    if not time_us.is_finite() or abs(time_us) > _LARGEST_US:
        return None
    return int((time_us * 1000).to_integral_value())


def decimal_us(time_ns: int) -> str:
    """A time in ns as decimal microseconds, without loss."""
    sign = "-" if time_ns < 0 else ""
    return f"{sign}{abs(time_ns) // 1000}.{abs(time_ns) % 1000:03d}"
