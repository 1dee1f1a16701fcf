"""Median and spread of a sample: no single time is ever shown without them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Spread:
    """A sample in six numbers, in the unit of the sample."""

    n: int
    median: float
    min: float
    max: float
    p25: float
    p75: float

    @property
    def is_wide(self) -> bool:
        """Whether even the middle half of the sample differs by half: something else was at work on the machine."""
        return self.p75 > 1.5 * self.p25


def spread(values: Sequence[float] | np.ndarray) -> Spread | None:
    """The spread of a one-dimensional sample, None when it is empty."""
    sample = np.asarray(values, np.float64)
    if not sample.size:
        return None
    low, p25, median, p75, high = np.percentile(sample, (0, 25, 50, 75, 100)).tolist()
    return Spread(n=int(sample.size), median=median, min=low, max=high, p25=p25, p75=p75)
