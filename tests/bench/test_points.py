"""When a point's window is measured anew."""

import pytest

from core.bench.points import is_slowed
from core.store.manifest import ClockSample


def at(*mhz, reasons=0):
    return tuple(ClockSample(0.0, one, 3201, 400.0, 50, reasons) for one in mhz)


@pytest.mark.parametrize(
    ("samples", "best_mhz", "slowed"),
    [
        (at(1980, 1980), 0, False),
        (at(1980, 1980), 1980, False),
        (at(1965, 1980), 1980, False),
        (at(1605, 1980), 0, True),
        (at(1605, 1605), 1980, True),  # a power cap that NVML gives no reason for
        (at(1605, 1605), 0, False),  # as far as anybody knows, this card goes no faster
        (at(1980, 1980, reasons=0x4), 1980, True),
        (at(None, None), 1980, False),
        ((), 1980, False),
    ],
)
def test_a_window_at_lower_clocks_than_the_best_is_slowed(samples, best_mhz, slowed):
    assert is_slowed(samples, best_mhz) is slowed
