"""What a sweep would take: what is missing of it, and only what fits."""

import dataclasses

from core.estimate import Rates
from core.store.manifest import Machine
from core.sweep import make_sweep
from core.sweep_estimate import estimate_sweep
from tests.runs import H200

RATES = Rates({"bf16": 1e14, "fp16": 1e14, "fp32": 1e13}, 1e12, 2.0, 10**11)
MACHINE = Machine(dataclasses.replace(H200, memory_bytes=10**11), {"torch": "2.13.0"}, RATES, {})
FIELDS = {"layer": "linear", "in_features": "4096", "axis": "batch", "backends": "compile"}


def test_a_point_that_does_not_fit_is_counted_and_takes_nothing():
    fits = estimate_sweep(make_sweep({**FIELDS, "values": "4,8"}), frozenset(), MACHINE)
    both = estimate_sweep(make_sweep({**FIELDS, "values": "4,8,16000000"}), frozenset(), MACHINE)
    assert (fits.unfit, fits.unfit_why) == (0, None) and both.unfit == 1 and "need" in both.unfit_why
    assert (both.memory_bytes, both.compile_s) == (fits.memory_bytes, fits.compile_s)
    assert both.seconds < fits.seconds + 2


def test_only_what_is_missing_is_predicted():
    sweep = make_sweep({**FIELDS, "values": "4,8"})
    assert estimate_sweep(sweep, {0}, MACHINE).compile_s == estimate_sweep(sweep, frozenset(), MACHINE).compile_s / 2
