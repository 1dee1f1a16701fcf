"""How numbers, sizes and lists are written in sentences."""

from __future__ import annotations

from collections.abc import Sequence

_TIMES = {1: "once", 2: "twice"}
_SUFFIXES = {1: "st", 2: "nd", 3: "rd"}


def listed(titles: Sequence[str]) -> str:
    """ "a", "a and b", "a; b and c": titles hold commas of their own."""
    return titles[0] if len(titles) == 1 else f"{'; '.join(titles[:-1])} and {titles[-1]}"


def counted(n: int, one: str, many: str | None = None) -> str:
    """ "1 size", "12 sizes"."""
    return f"{n:,} {one if n == 1 else many or one + 's'}"


def times(n: int) -> str:
    """ "once", "twice", "5 times"."""
    return _TIMES.get(n, f"{n:,} times")


def ordinal(n: int) -> str:
    """ "1st", "2nd", "11th"."""
    return f"{n:,}{'th' if n % 100 in (11, 12, 13) else _SUFFIXES.get(n % 10, 'th')}"


def sizes_words(axes: Sequence[str], values: Sequence[int]) -> str:
    """ "batch 8, out features 14,336": a size after its name."""
    return ", ".join(f"{size_name(axis)} {value:,}" for axis, value in zip(axes, values, strict=True))


def size_name(axis: str) -> str:
    """A size's name as people write it: out_features is "out features"."""
    return axis.replace("_", " ")


def us(value_us: float) -> str:
    """A time given in µs with three digits that count, in µs, or from 10 ms on in ms."""
    if abs(value_us) >= 10_000:
        return f"{_three_digits(value_us / 1000)} ms"
    return f"{_three_digits(value_us)} µs"


def us_range(low_us: float, high_us: float) -> str:
    """ "37.0 to 56.8 µs", or one time where both read the same."""
    low, high = us(low_us), us(high_us)
    if low == high:
        return high
    (first, unit), (_, last_unit) = low.rsplit(" ", 1), high.rsplit(" ", 1)
    return f"{first} to {high}" if unit == last_unit else f"{low} to {high}"


def seconds(value_s: float) -> str:
    """A time given in seconds with three digits that count, in ms, seconds, minutes or hours."""
    if abs(value_s) < 0.1:
        return f"{_three_digits(value_s * 1000)} ms"
    if abs(value_s) < 600:
        return f"{_three_digits(value_s)} s"
    return f"{_three_digits(value_s / 60)} min" if abs(value_s) < 7200 else f"{_three_digits(value_s / 3600)} h"


def about(n: float) -> str:
    """A number of calls with two digits that count: what is computed from medians knows no more."""
    whole = round(n)
    return f"{round(whole, min(0, 2 - len(str(abs(whole))))):,}"


def percent(share: float) -> str:
    """ "21%", and with a decimal below ten: "2.4%"."""
    return f"{share:.0%}" if abs(share) >= 0.0995 else f"{share:.1%}"


def _three_digits(value: float) -> str:
    decimals = 0 if abs(value) >= 99.95 else 1 if abs(value) >= 9.995 else 2
    return f"{value:,.{decimals}f}"
