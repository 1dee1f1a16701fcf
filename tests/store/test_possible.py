"""What a run can say: numbers that a measurement gives; every recording does, and an edited file is told."""

from dataclasses import replace
from pathlib import Path

import pytest

from core.analysis.ledger import Jit
from core.analysis.spread import Spread
from core.store import runfile
from core.store.manifest import ClockSample, Compile, Samples
from core.store.possible import impossible, is_date
from core.sweep import make_sweep, plan
from tests.sweeps import BATCHES, point_file

ROOT = Path(__file__).resolve().parents[2]
SWEEP = make_sweep(BATCHES)
POINT = runfile.read_manifest(point_file("own", SWEEP, plan(SWEEP)[5]))
SOUND = Spread(3, 2.0, 1.0, 3.0, 1.5, 2.5)


def of_point(**changes):
    return replace(POINT, point=replace(POINT.point, **changes))


def of_call(**changes):
    return of_point(call=replace(POINT.point.call, **changes))


def of_kernel(**changes):
    return of_point(kernels=(replace(POINT.point.kernels[0], **changes),))


def of_attempt(**changes):
    return of_call(attempts=(replace(POINT.point.call.attempts[0], **changes),))


def of_compile(**changes):
    known = {
        "process": "warm",
        "cold": True,
        "first_call_s": 1.0,
        "stages_s": {},
        "kernels": (),
        "kernel_time_us": None,
    }
    return replace(POINT, compiles=(Compile(**(known | changes)),))


@pytest.mark.parametrize("folder", ["recordings", "tests"])
def test_every_run_that_was_recorded_is_possible(folder):
    files = sorted((ROOT / folder).rglob("*.run.zip"))
    assert files and {impossible(runfile.read_manifest(path)) for path in files} == {None}


@pytest.mark.parametrize(
    "manifest",
    [
        of_call(first_call_s=0.0),
        of_point(kernel_time_us=SOUND, role_us={"gate": Spread(1, 5.0, 5.0, 5.0, 5.0, 5.0)}),
        # As a percentile of equal values may come out.
        of_point(kernel_time_us=Spread(3, 0.3, 0.3, 0.3, 0.30000000000000004, 0.3)),
        of_call(jits=(Jit("kernel", {"BLOCK_SIZE": "4096", "dtype": "tl.bfloat16"}, None),), cuda_graphs=None),
    ],
)
def test_a_sound_point_is_possible(manifest):
    assert impossible(manifest) is None


SECONDS = "seconds hold times that nothing can take; the file was edited or is damaged."
COUNTS = "counts hold numbers that nothing can have; the file was edited or is damaged."
SPREADS = "spreads of times are none that a measurement gives; the file was edited or is damaged."


@pytest.mark.parametrize(
    ("manifest", "sentence"),
    [
        (replace(POINT, seconds=-1.0), SECONDS),
        (replace(POINT, stages_s={"profile": 2e9}), SECONDS),
        (of_compile(first_call_s=-0.1), SECONDS),
        (of_compile(stages_s={"inductor": float("inf")}), SECONDS),
        (of_compile(kernel_time_us=replace(SOUND, n=0)), SPREADS),
        (of_compile(graph_breaks=-1), COUNTS),
        (of_call(first_call_s=-5.0), SECONDS),
        (of_call(first_call_s=1e300), SECONDS),
        (of_call(first_call_s=float("nan")), SECONDS),
        (of_attempt(stages_s={"total": -1.0}), SECONDS),
        (of_attempt(guard_count=-1), COUNTS),
        (of_call(jits=(Jit("kernel", {}, -1.0),)), SECONDS),
        (of_call(cuda_graphs=-4), COUNTS),
        (of_point(replayed=-1), COUNTS),
        (of_kernel(per_step=-1.0), COUNTS),
        (of_kernel(time_us=replace(SOUND, max=float("inf"))), SPREADS),
        (of_point(kernel_time_us=replace(SOUND, n=0)), SPREADS),
        (of_point(kernel_time_us=replace(SOUND, min=-1.0)), SPREADS),
        (of_point(kernel_time_us=replace(SOUND, p25=2.1)), SPREADS),
        (of_point(role_us={"gate": replace(SOUND, max=1e308)}), SPREADS),
        (of_point(kernel_time_us=Spread(3, 1e-310, 1e-310, 2e-310, 1e-310, 2e-310)), SPREADS),
        (replace(POINT, step_us=Samples("us", "device events", (2e-310, 1.0))), "step_us holds times that no run can take"),
        (replace(POINT, window_clocks=(ClockSample(0.0, -5, None, None, None, None),)), "clocks are none that a GPU has"),
        (replace(POINT, step_clocks=(ClockSample(0.0, 10**9, None, None, None, None),)), "clocks are none that a GPU has"),
        (of_call(jits=(Jit("kernel", {"BLOCK_SIZE": "9" * 201}, None),)), "constexpr arguments that no Triton kernel takes"),
        (of_call(jits=(Jit("kernel", {"BLOCK_SIZE": "\N{SUPERSCRIPT TWO}"}, None),)), "that no Triton kernel takes"),
        (replace(POINT, created="\N{ARABIC-INDIC DIGIT TWO}026-01-02T03:04:05+00:00"), "status or date"),
    ],
)  # fmt: skip
def test_what_no_measurement_gives_is_one_sentence(manifest, sentence):
    told = impossible(manifest)
    assert sentence in told and told.endswith(".")


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        ("2026-01-02T03:04:05+00:00", True),
        ("2026-01-02T03:04:05.123456Z", True),
        ("2026-01-02T03:04", True),
        ("2026-13-02T03:04:05+00:00", False),
        ("2026-01-02T03:04:05+00:00 and more", False),
        ("2026-01-02T03:04:05+00:00\n", False),
        ("", False),
    ],
)
def test_a_date_is_a_whole_one(text, is_one):
    assert is_date(text) is is_one
