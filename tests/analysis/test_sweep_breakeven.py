"""After how many calls a compile has paid: exactly, within bounds, or why no number is named."""

import dataclasses

import pytest

from core.analysis.breakeven import PayBack, break_even, lost_at_most_s, lost_to_compiling_s
from core.analysis.points import BUSY_HOST, STEADY, VARIES
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
            "no difference of the step beyond the noise, and first calls took 2.00 s longer: no number of calls is named",
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
    assert found.words == "ahead from the first call: it saves 20.0 µs a call and lost no more to compiling"


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


def over_two(*steps, call_at_16=None, **changes):
    """torch.compile at batch 8, compiled, and at batch 16, by default a reuse, against eager's 100 and 200 µs."""
    second = call_at_16 or call(served=("0/0",))
    points = (
        point("compile", 0, 8, call(compiled(), first_s=1.00008), step=steps[0]),
        point("compile", 1, 16, second, step=steps[1], **changes),
    )
    (found,) = break_even((eager(100.0, 200.0), of("compile", *points)), AXES)
    return found


@pytest.mark.parametrize(
    ("step", "verdict", "words"),
    [
        (80.0, "pays", "pays back after 50,000 calls as in the list (49,000 to 51,000 by the steps' quartiles): 1.00 s lost to "
         "compiling, 20.0 µs won a call"),
        (130.0, "never", "never pays back: a step takes 30.0 µs more than on Eager"),
        (99.0, "alike", "no difference of the step beyond the noise, and first calls took 1.00 s longer: no number of calls is "
         "named"),
    ],
)  # fmt: skip
def test_a_list_goes_by_the_calls_that_are_known_and_says_so_in_every_verdict(step, verdict, words):
    found = over_two(step, 160.0, doubt="throttled")
    assert (found.known, found.sizes, found.verdict) == (1, 2, verdict)
    assert found.words == f"{words} (over 1 of 2 calls: the others are unknown)"


@pytest.mark.parametrize(
    ("step", "verdict", "words"),
    [(100.0, "until", " is slower by 20.0 µs a call"), (60.0, "at once", " and lost no more to compiling")],
)
def test_what_compiled_less_says_it_too(step, verdict, words):
    slow = of(
        "compile_static",
        point("compile_static", 0, 8, call(compiled(), first_s=3.0), step=80.0),
        point("compile_static", 1, 16, call(served=("0/0",)), step=160.0, doubt="throttled"),
    )
    other = of("compile_dynamic", *(point("compile_dynamic", at, size, call(served=("0/0",)), step=step)
                                    for at, size in enumerate((8, 16))))  # fmt: skip
    (found,) = break_even((slow, other), AXES, against="compile_static")
    assert found.verdict == verdict
    assert found.words.endswith(f"{words} (over 1 of 2 calls: the others are unknown)")


def test_where_all_calls_are_known_nothing_is_said_of_others():
    found = over_two(80.0, 160.0)
    assert (found.known, found.sizes) == (2, 2)
    assert "unknown" not in found.words and "ahead at" not in found.words


@pytest.mark.parametrize(
    ("step", "changes", "lost_s"),
    [
        (160.0, {"doubt": "throttled"}, 1.0 + 5.0 - 160e-6),
        (None, {"failure": "Out of memory."}, 1.0 + 5.0),
        (None, {}, 1.0 + 5.0),
    ],
)
def test_what_was_compiled_at_an_unknown_call_is_lost_all_the_same(step, changes, lost_s):
    found = over_two(80.0, step, call_at_16=call(compiled("0/1"), first_s=5.0), **changes)
    assert (found.known, found.sizes, found.verdict) == (1, 2, "pays")
    assert found.lost_s == pytest.approx(lost_s)
    assert found.points[1].lost_s == pytest.approx(lost_s - 1.0)
    assert found.calls == pytest.approx(lost_s / 20e-6, abs=1)


def test_what_was_compiled_where_the_other_was_not_measured_is_lost_too():
    points = (
        point("compile", 0, 8, call(served=("0/0",)), step=80.0),
        point("compile", 1, 16, call(compiled(), first_s=5.0), step=160.0),
    )
    (found,) = break_even((eager(100.0), of("compile", *points)), AXES)
    assert (found.verdict, found.lost_s) == ("pays", pytest.approx(5.0 - 160e-6))
    assert found.points[1].words == "unknown: Eager was not measured here"


def test_a_list_that_is_ahead_here_and_behind_there_says_how_often():
    found = over_two(80.0, 210.0)
    assert (found.verdict, found.points[0].verdict, found.points[1].verdict) == ("pays", "pays", "never")
    assert found.words.endswith("5.00 µs won a call; of these calls ahead at 1, behind at 1")


def repeated(second_us, *, base_us=100.0, **changes):
    """Batch 8 twice, served by the same entry, with 16 between."""
    points = (
        point("compile", 0, 8, call(compiled()), step=80.0),
        point("compile", 1, 16, call(served=("0/0",)), step=160.0),
        point("compile", 2, 8, call(**({"served": ("0/0",)} | changes)), step=second_us),
    )
    base = of("eager", *(point("eager", at, batch, call(served=()), step=us)
                         for at, (batch, us) in enumerate(((8, 100.0), (16, 200.0), (8, base_us)))))  # fmt: skip
    (found,) = break_even((base, of("compile", *points)), AXES)
    return [row.words for row in found.points if row.verdict == "unknown"], found


def test_the_same_call_at_two_speeds_is_unknown():
    words, found = repeated(80.0 * STEADY + 1)
    assert words == ["unknown: torch.compile took 80.0 µs and 101 µs for the same call at different times"] * 2
    assert (found.known, found.sizes) == (1, 3)
    assert repeated(80.0 * STEADY - 1)[0] == []
    assert (
        repeated(80.0, base_us=126.0)[0]
        == ["unknown: Eager took 100 µs and 126 µs for the same call at different times"] * 2
    )


def test_the_same_size_served_by_another_entry_is_another_call():
    assert repeated(120.0, served=("0/1",))[0] == []
    assert repeated(120.0, served=(), ran_eager=True)[0] == []


def test_a_step_that_the_cpu_paces_beside_other_sweeps_is_unknown():
    paced = {"step": 80.0, "roles": {"activation": 50.0}, "beside_others": True}
    (found,) = break_even((eager(100.0), of("compile", point("compile", 0, 8, call(compiled()), **paced))), AXES)
    assert (found.verdict, found.words) == ("unknown", f"unknown: {BUSY_HOST}")
    base = of("eager", point("eager", 0, 8, call(served=()), **(paced | {"step": 100.0})))
    quick = of("compile", point("compile", 0, 8, call(compiled()), step=80.0))
    assert break_even((base, quick), AXES)[0].words == f"unknown: {BUSY_HOST}"


def test_a_step_that_its_kernels_fill_is_known_beside_other_sweeps():
    full = {"roles": {"activation": 70.0}, "beside_others": True}
    assert against_eager(80.0, call(compiled()), **full).verdict == "pays"
    assert against_eager(80.0, call(compiled()), on_gpu=False, **full).words == f"unknown: {BUSY_HOST}"
    assert against_eager(80.0, call(compiled()), on_gpu=False, roles={"activation": 70.0}).verdict == "pays"


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


def test_recording_cuda_graphs_is_lost_too():
    series = of("compile")
    both = point("compile", 0, 8, call(compiled(), first_s=2.0001, graph_calls_s=(0.0301, 0.0101)), step=100.0)
    assert lost_to_compiling_s(series, both) == pytest.approx(2.04)
    recorded = point("compile", 1, 16, call(served=("0/0",), graph_calls_s=(0.0301, 0.00005)), step=100.0)
    assert lost_to_compiling_s(series, recorded) == pytest.approx(0.03)
    unknown = dataclasses.replace(recorded, step_us=None)
    assert lost_to_compiling_s(series, unknown) is None
    assert lost_at_most_s(series, unknown) == pytest.approx(0.03015)


def test_repeats_in_doubt_make_nobody_unsteady():
    twice = [
        point("eager", at, 4, call(served=()), step=us, doubt=doubt)
        for at, us, doubt in ((0, 100.0, None), (1, 300.0, "throttled"))
    ]
    (found,) = break_even(
        (of("eager", *twice), of("compile", point("compile", 0, 4, call(compiled()), step=80.0))), AXES
    )
    assert found.points[0].verdict == "pays"


def test_where_the_cpu_sets_the_pace_it_is_said():
    base = eager(100.0, 100.0)
    waits = point("compile", 0, 8, call(compiled()), step=150.0, roles={"gate": 30.0, "activation": 20.0})
    works = point("compile", 1, 16, call(served=("0/0",)), step=152.0, roles={"gate": 130.0, "activation": 20.0})
    (found,) = break_even((base, of("compile", waits, works)), AXES)
    assert found.words.startswith(
        "on the machine that measured this, whose CPU sets the pace at 1 of 2 calls: never pays back"
    )
    (found,) = break_even((base, of("compile", works)), AXES)
    assert "pace" not in found.words


def test_a_list_of_which_few_calls_can_be_compared_is_not_judged():
    doubtful = [point("compile", at, 8 * (at + 1), call(), step=80.0, doubt="throttled") for at in range(2)]
    sound = point("compile", 2, 24, call(compiled()), step=80.0)
    (found,) = break_even((eager(100.0, 100.0, 100.0), of("compile", *doubtful, sound)), AXES)
    assert (found.verdict, found.known, found.sizes, found.calls) == ("unknown", 1, 3, None)
    assert found.words == "unknown: 1 of 3 calls can be compared, too few for the list (torch.compile: throttled)"
