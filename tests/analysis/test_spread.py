"""spread: six numbers or None."""

import numpy as np
import pytest

from core.analysis.spread import Spread, spread


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([3.0], Spread(n=1, median=3, min=3, max=3, p25=3, p75=3)),
        ((1, 2, 3, 4, 5), Spread(n=5, median=3, min=1, max=5, p25=2, p75=4)),
        (np.array([4.0, 1.0]), Spread(n=2, median=2.5, min=1, max=4, p25=1.75, p75=3.25)),
        ([], None),
        (np.array([]), None),
    ],
)
def test_spread(values, expected):
    assert spread(values) == expected
