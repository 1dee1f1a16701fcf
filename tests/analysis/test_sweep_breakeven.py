"""After how many calls a compile has paid: exactly, within bounds, or why no number is named."""

import dataclasses

import pytest

from core.analysis.breakeven import PayBack, break_even, lost_to_compiling_s
from core.analysis.points import VARIES
from tests.points import about, call, compiled, jit, of, point

AXES = ("batch",)


def eager(*steps, **changes):
    return of(
        "eager", *(point("eager", at, 8 * (at + 1), call(served=()), step=us, **changes) for at, us in enumerate(steps))
    )


def against_eager(step, found, base=100.0, **changes):
    """How one size of torch.compile does against eager's step of 100 µs."""
    (of_list,) = break_even((eager(base), of("compile", point("compile", 0, 8, found, step=step, **changes))), AXES)
    return of_list


def test_a_size_that_pays_is_told_in_full():
    found = against_eager(80.0, call(compiled(), first_s=2.00008), count=3)
    assert found.points == (
        PayBack(
            series="compile",
            title="torch.compile",
            against="eager",
            run_id="compile-0",
            index=0,
            values=(8,),
            sizes="batch 8",
            count=3,
            verdict="pays",
            words="pays back after 100,000 calls of this size: 2.00 s lost to compiling, 20.0 µs won a call",
            lost_s=pytest.approx(2.0),
            won_us=20.0,
            won_low_us=pytest.approx(99.75 - 80.2),
            won_high_us=pytest.approx(100.25 - 79.8),
            calls=100_000,
        ),
    )


def test_the_list_weighs_its_sizes_and_gives_bounds():
    compiled_once = of(
        "compile",
        point("compile", 0, 8, call(compiled(), first_s=1.0), step=80.0, count=3),
        point("compile", 1, 16, call(served=("0/0",)), step=190.0),
    )
    base = of(
        "eager",
        point("eager", 0, 8, call(served=()), step=100.0, count=3),
        point("eager", 1, 16, call(served=()), step=200.0),
    )
    (found,) = break_even((base, compiled_once), AXES)
    assert (found.verdict, found.known, found.sizes) == ("pays", 2, 2)
    assert found.won_us == pytest.approx((3 * 20 + 10) / 4)
    assert found.lost_s == pytest.approx(1.0 - 80e-6)
    assert found.calls == 57_139
    assert found.calls_low < found.calls < found.calls_high
    assert found.words.startswith(
        "pays back after 57,000 calls as in the list (55,000 to 59,000 by the steps' quartiles)"
    )


@pytest.mark.parametrize(
    ("step", "verdict", "words"),
    [
        (130.0, "never", "never pays back: a step takes 30.0 µs more than on Eager"),
        (
            99.0,
            "alike",
            "no difference of the step beyond the noise, and compiling took 2.00 s: no number of calls is named",
        ),
    ],
)
def test_what_never_pays_and_what_is_noise(step, verdict, words):
    found = against_eager(step, call(compiled(), first_s=2.0))
    assert (found.verdict, found.words, found.calls, found.calls_low) == (verdict, words, None, None)
    assert (found.points[0].verdict, found.points[0].words) == (verdict, words)


def test_wide_steps_name_no_number_though_their_medians_differ():
    wide = dataclasses.replace(about(80.0), p25=75.0, p75=104.0)
    found = against_eager(80.0, call(compiled()), step_us=wide)
    assert (found.verdict, found.calls) == ("alike", None)


def test_what_compiled_nothing_is_ahead_at_once():
    found = against_eager(80.0, call(served=("0/0",)))
    assert found.words == "ahead from the first call: it saves 20.0 µs a call and lost nothing to compiling"


def test_two_compiling_series_are_held_against_each_other():
    quick = of("compile_dynamic", point("compile_dynamic", 0, 8, call(compiled(), first_s=1.0), step=100.0))
    slow = of("compile_static", point("compile_static", 0, 8, call(compiled(), first_s=3.000005), step=80.0))
    (found,) = break_even((quick, slow), AXES, against="compile_dynamic")
    assert (found.verdict, found.calls) == ("pays", 100_002)
    (found,) = break_even((slow, quick), AXES, against="compile_static")
    assert (found.verdict, found.calls, found.calls_low, found.calls_high) == ("until", 100_002, 97_801, 102_304)
    assert found.points[0].words == (
        "ahead for 100,000 calls of this size, then behind: it compiled 2.00 s less and is slower by 20.0 µs a call"
    )


def test_a_silent_eager_call_is_named():
    assert (
        against_eager(100.0, call(served=(), ran_eager=True))
        .points[0]
        .words.startswith("it ran eager here; no difference")
    )


@pytest.mark.parametrize(
    ("step", "found", "changes", "words"),
    [
        (80.0, None, {}, "what its first call compiled was not recorded"),
        (None, call(compiled()), {}, "the step was not measured"),
        (None, None, {"failure": "Out of memory."}, "torch.compile failed: Out of memory."),
        (80.0, call(compiled()), {"doubt": "the clocks were held down"}, "torch.compile: the clocks were held down"),
        (80.0, call(compiled()), {"clocks_mhz": (1620,)}, "the clocks differ (1,620 to 1,980 MHz)"),
        (80.0, call(compiled()), {"clocks_mhz": ()}, "the clocks were not read"),
        (80.0, call(compiled()), {"device": "Another"}, "the devices differ (Another, NVIDIA H200)"),
        (80.0, call(compiled()), {"step_us": about(80.0, n=2)}, "fewer than 3 steps were measured"),
        (80.0, call(compiled()), {"step_us": about(800.0, by=0.9)}, VARIES),
    ],
)
def test_what_cannot_be_compared_is_unknown(step, found, changes, words):
    told = against_eager(step, found, **changes)
    assert (told.verdict, told.words, told.known, told.lost_s) == ("unknown", f"unknown: {words}", 0, None)


def test_a_list_goes_by_the_sizes_that_are_known():
    two = of(
        "compile",
        point("compile", 0, 8, call(compiled()), step=80.0),
        point("compile", 1, 16, call(compiled("0/1")), failure="Out of memory."),
    )
    (found,) = break_even((eager(100.0, 200.0), two), AXES)
    assert (found.known, found.sizes, found.verdict) == (1, 2, "pays")
    assert "as in the list, over 1 of 2 sizes" in found.words


def test_a_size_that_one_of_them_lacks_is_named():
    (found,) = break_even((eager(100.0), of("compile", point("compile", 1, 16, call(compiled()), step=80.0))), AXES)
    assert [row.words for row in found.points] == [
        "unknown: torch.compile was not measured here",
        "unknown: Eager was not measured here",
    ]


def test_without_the_other_series_there_is_nothing_to_say():
    alone = of("compile", point("compile", 0, 8, call(compiled()), step=80.0))
    assert break_even((alone,), AXES) == ()
    assert break_even((alone,), AXES, against="liger") == ()
    assert break_even((eager(), of("compile")), AXES)[0].words == "unknown: nothing was measured"


def test_seconds_lost_are_those_of_calls_that_compiled():
    liger, compile_ = of("liger"), of("compile")
    assert lost_to_compiling_s(
        liger, point("liger", 0, 8, call(jits=(jit(),), first_s=0.3), step=1e5)
    ) == pytest.approx(0.2)
    assert lost_to_compiling_s(liger, point("liger", 0, 8, call(jits=(), first_s=0.3), step=1e5)) == 0.0
    assert lost_to_compiling_s(liger, point("liger", 0, 8, call(jits=None), step=1e5)) is None
    assert lost_to_compiling_s(compile_, point("compile", 0, 8, call(jits=None), step=1e5)) == 0.0
    assert lost_to_compiling_s(compile_, point("compile", 0, 8, call(compiled()))) is None


def test_where_the_cpu_sets_the_pace_it_is_said():
    base = eager(100.0, 100.0)
    waits = point("compile", 0, 8, call(compiled()), step=150.0, roles={"gate": 30.0, "activation": 20.0})
    works = point("compile", 1, 16, call(served=("0/0",)), step=152.0, roles={"gate": 130.0, "activation": 20.0})
    (found,) = break_even((base, of("compile", waits, works)), AXES)
    assert found.words.endswith("(at 1 of 2 sizes the CPU sets its pace, not the GPU)")
    (found,) = break_even((base, of("compile", works)), AXES)
    assert "pace" not in found.words
