"""What a log of calls costs on each backend, what to use for it, and what would turn that."""

import dataclasses

import pytest

from core.analysis.points import BUSY_HOST, VARIES
from core.analysis.traffic import Answer, Bill, Flip, Seconds, answer, bills
from tests.points import about, call, compiled, of, point

AXES = ("batch", "seq")
SIZES = ((8, 512), (16, 512), (32, 512))


def served(name, *rows, **changes):
    """A series over SIZES: (first call in s, step in µs, count, compiled?) a row."""
    points = [
        point(name, at, SIZES[at], call(*([compiled(f"0/{at}")] if is_compiled else []), served=("0/0",), first_s=first_s),
              step=us, count=count, **changes)
        for at, (first_s, us, count, is_compiled) in enumerate(rows)
    ]  # fmt: skip
    return of(name, *points)


EAGER = served("eager", (0.0001, 100.0, 100_001, False), (0.0002, 200.0, 1, False))
FAST = served("compile", (2.0, 80.0, 100_001, True), (0.00016, 160.0, 1, False))


def test_a_bill_adds_up_first_calls_and_steps():
    first, second = bills((EAGER, FAST), AXES)
    assert second == Bill(
        series="compile",
        title="torch.compile",
        calls=100_002,
        seconds=Seconds(
            total_s=pytest.approx(2.00016 + 8.0),
            low_s=pytest.approx(2.00016 + 8.0 * 0.9975),
            high_s=pytest.approx(2.00016 + 8.0 * 1.0025),
            compiling_s=pytest.approx(2.0 - 80e-6),
            working_s=pytest.approx(0.00016 + 80e-6 + 8.0),
            fixed_s=pytest.approx(2.00016 - 240e-6),
            growing_s=pytest.approx(8.00008 + 0.00016),
        ),
        peak_bytes=None,
        steps=10,
        eager_calls=0,
        failures=(),
        why=None,
        doubt=None,
        how="computed: each size's first call, and (count - 1) times the median of at least 10 measured steps",
    )
    assert first.seconds.total_s == pytest.approx(10.0003)


@pytest.mark.parametrize(("count", "lost_s"), [(1, 0.0), (2, 0.05), (3, 0.07), (1000, 0.07)])
def test_recording_cuda_graphs_costs_what_the_traffic_makes_of_it(count, lost_s):
    found = point(
        "compile",
        0,
        SIZES[0],
        call(compiled(), first_s=2.0001, graph_calls_s=(0.0501, 0.0201)),
        step=100.0,
        count=count,
    )
    (bill,) = bills((of("compile", found),), AXES)
    assert bill.seconds.compiling_s == pytest.approx(2.0 + lost_s)
    assert bill.seconds.total_s == pytest.approx(2.0001 + lost_s + (count - 1) * 1e-4)
    assert bill.seconds.working_s == pytest.approx(count * 1e-4)


def test_the_answer_is_one_sentence_with_its_bounds_and_what_turns_it():
    slower = served("eager", (0.0001, 200.0, 100_001, False), (0.0002, 400.0, 1, False))
    found = answer((slower, FAST), AXES)
    assert (found.use, found.saved_s) == ("compile", pytest.approx(10.0, abs=0.001))
    assert found.saved_low_s == pytest.approx(10.0 - 0.07, abs=0.002)
    assert found.saved_high_s == pytest.approx(10.0 + 0.07, abs=0.002)
    assert found.flip == Flip("Eager", pytest.approx(2.0 / 12.0, rel=1e-3), 16_669)
    assert found.sentence == (
        "Use torch.compile: it saves 10.0 s of Eager's 20.0 s, 50% (9.93 s to 10.1 s by the steps' quartiles); with fewer than "
        "17,000 of its 100,002 calls it is Eager: compiling takes 2.00 s."
    )


def test_no_difference_is_no_answer_but_more_traffic_may_be_one():
    found = answer((EAGER, FAST), AXES)
    assert (found.use, found.saved_s) == (None, None)
    assert found.sentence == (
        "Stay with Eager: no difference beyond the noise between torch.compile and Eager, about 10.0 s; the more of the "
        "same traffic, the more torch.compile is ahead."
    )


def test_little_traffic_stays_eager_until_there_is_more():
    few = served("eager", (0.0001, 100.0, 1001, False), (0.0002, 200.0, 1, False))
    much = served("compile", (2.0, 80.0, 1001, True), (0.00016, 160.0, 1, False))
    found = answer((few, much), AXES)
    assert (found.use, found.saved_s) == ("eager", None)
    assert found.sentence == (
        "Use Eager: 0.10 s in all, and torch.compile would take 21 times as long; from 100 times the traffic on (100,000 calls) "
        "it is torch.compile."
    )
    assert found.flip.scale == pytest.approx(99.7, abs=0.2)


def test_steps_that_vary_widely_are_no_answer():
    wide = served("compile", (2.0, 80.0, 100_001, True), (0.00016, 160.0, 1, False), step_us=about(80.0, by=0.9))
    found = answer((EAGER, wide), AXES)
    assert found.use is None
    assert found.sentence.startswith(f"What to use is unknown: at batch 8, seq 512 torch.compile: {VARIES}")


def test_a_flip_is_no_less_traffic_than_its_rows():
    eager = served("eager", (0.0001, 100.0, 200, False), (0.0002, 100.0, 1, False), (0.0001, 100.0, 1, False))
    quick = served("compile", (0.0001, 50.0, 200, True), (0.00005, 50.0, 1, False), (0.00005, 50.0, 1, False))
    assert answer((eager, quick), AXES).flip is None


def test_who_is_slower_at_any_amount_turns_nothing():
    slow = served("compile", (2.0, 300.0, 100_001, True), (0.1, 600.0, 1, False))
    found = answer((EAGER, slow), AXES)
    assert found.flip is None
    assert found.sentence.endswith(
        ", and torch.compile would take 3.2 times as long; more or less of the same traffic would not turn that."
    )


def test_calls_that_silently_ran_eager_are_told_with_the_answer():
    slow = served("eager", (0.0001, 200.0, 100_001, False), (0.0002, 400.0, 1, False))
    silent = dataclasses.replace(FAST.points[1], call=call(served=(), ran_eager=True, first_s=0.00016))
    assert answer((slow, of("compile", FAST.points[0], silent)), AXES).sentence.endswith(
        "compiling takes 2.00 s. 1 of its calls silently ran eager."
    )


def test_an_equal_is_named_beside_the_best():
    slow = served("eager", (0.0001, 200.0, 100_001, False), (0.0002, 400.0, 1, False))
    twin = dataclasses.replace(FAST, name="compile_dynamic", title="compile, dynamic=True")
    assert answer((slow, FAST, twin), AXES).sentence.startswith(
        "Use torch.compile (as good: compile, dynamic=True): it saves 10.0 s of Eager's 20.0 s"
    )


def test_without_eager_the_best_is_held_against_the_next():
    slow = served("liger", (0.0001, 200.0, 100_001, False), (0.0002, 400.0, 1, False))
    jits = [dataclasses.replace(one, call=dataclasses.replace(one.call, jits=())) for one in slow.points]
    found = answer((of("liger", *jits), FAST), AXES)
    assert found.sentence.startswith("Use torch.compile: 10.0 s in all, and Liger kernels would take 100% more;")
    assert found.saved_s is None


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"failure": "Out of memory."}, "it failed at batch 16, seq 512: Out of memory."),
        ({"call": None}, "the first call at batch 16, seq 512 was not recorded"),
        ({"step_us": None}, "the step at batch 16, seq 512 was not measured"),
        ({"step_us": about(160.0, n=2)}, "fewer than 3 steps were measured at batch 16, seq 512"),
    ],
)
def test_a_row_that_is_unknown_makes_the_seconds_unknown(changes, why):
    broken = of("compile", FAST.points[0], dataclasses.replace(FAST.points[1], **changes))
    bill = bills((EAGER, broken), AXES)[1]
    assert (bill.seconds, bill.why) == (None, why)
    found = answer((EAGER, broken), AXES)
    assert (found.use, found.sentence) == (
        None,
        f"Eager: 10.0 s in all; there is nothing to compare it with. Left out: torch.compile ({why}).",
    )


def test_ligers_unknown_jits_are_unknown_seconds():
    (bill,) = bills((served("liger", (0.1, 80.0, 10, False), (0.1, 160.0, 1, False)),), AXES)
    assert bill.why == "what the first call at batch 8, seq 512 compiled was not recorded"


def test_rows_not_measured_yet_are_counted():
    bill = bills((EAGER, of("compile", FAST.points[0])), AXES)[1]
    assert (bill.seconds, bill.why) == (None, "1 of 2 rows measured so far")
    assert bills((of("eager"),), AXES)[0].why == "0 of 0 rows measured so far"


def test_a_doubtful_row_is_shown_and_left_out_of_the_answer():
    doubtful = of("compile", FAST.points[0], dataclasses.replace(FAST.points[1], doubt="throttled"))
    bill = bills((EAGER, doubtful), AXES)[1]
    assert bill.seconds is not None
    assert bill.doubt == "batch 16, seq 512: throttled"
    slower = served("eager", (0.0001, 200.0, 100_001, False), (0.0002, 400.0, 1, False))
    found = answer((slower, doubtful), AXES)
    assert found.use == "compile"
    assert found.sentence.endswith(
        "of its 100,001 calls it is Eager: compiling takes 2.00 s. Left out on every backend: 1 row, at batch 16, seq 512 "
        "torch.compile: throttled."
    )
    assert (
        " of Eager's 20.0 s for the 1 of 2 rows that can be compared (more than 99% of the calls; all compiling counted), "
    ) in found.sentence


def breaker(doubt_at=None):
    """Eager takes 15 s; torch.compile 7.5 s, after 20 s of compiling at the first row."""
    slow = served("eager", *[(0.0001, 100.0, 50_000, False)] * 3)
    quick = served("compile", (20.0, 50.0, 50_000, True), *[(0.0001, 50.0, 50_000, False)] * 2)
    doubts = [dataclasses.replace(one, doubt="throttled") if one.index == doubt_at else one for one in quick.points]
    return slow, of("compile", *doubts)


@pytest.mark.parametrize(
    ("doubt_at", "eager", "more"),
    [
        (None, "15.0 s in all", "83% more"),
        (
            0,
            "10.0 s for the 2 of 3 rows that can be compared (67% of the calls; all compiling counted)",
            "2.5 times as long",
        ),
    ],
)
def test_a_compile_counts_although_its_row_is_in_doubt(doubt_at, eager, more):
    found = answer(breaker(doubt_at), AXES)
    assert found.use == "eager"
    assert found.sentence.startswith(f"Use Eager: {eager}, and torch.compile would take {more}; from ")
    assert found.flip.title == "torch.compile"
    assert found.flip.scale == pytest.approx(20.0 / (7.5 if doubt_at is None else 5.0), rel=1e-3)


def test_a_compile_in_doubt_is_told_with_the_answer_that_it_does_not_turn():
    slow, quick = breaker(doubt_at=0)
    slow = of("eager", *(dataclasses.replace(one, step_us=about(1000.0)) for one in slow.points))
    found = answer((slow, quick), AXES)
    assert (found.use, found.saved_s) == ("compile", pytest.approx(100.0 - 25.0, abs=0.01))
    assert found.sentence.endswith(
        "it is Eager: compiling takes 20.0 s. Left out on every backend: 1 row, at batch 8, seq 512 "
        "torch.compile: throttled."
    )


def test_a_row_that_the_cpu_paced_beside_other_sweeps_is_left_out():
    paced = [dataclasses.replace(one, beside_others=one.index == 1, kernel_time_us=about(30.0)) for one in FAST.points]
    slower = served("eager", (0.0001, 200.0, 100_001, False), (0.0002, 400.0, 1, False))
    found = answer((slower, of("compile", *paced)), AXES)
    assert found.use == "compile"
    assert found.sentence.endswith(f"Left out on every backend: 1 row, at batch 16, seq 512 {BUSY_HOST}.")
    busy = of("compile", *(dataclasses.replace(one, beside_others=True) for one in paced))
    assert answer((slower, busy), AXES) == Answer(None, f"What to use is unknown: at batch 8, seq 512 {BUSY_HOST}.")


def test_rows_that_nobody_measured_yet_are_missing_on_every_bill():
    found = bills((EAGER, FAST), AXES, rows=5)
    assert [(bill.seconds, bill.why) for bill in found] == [(None, "2 of 5 rows measured so far")] * 2
    assert answer((EAGER, FAST), AXES, rows=5) == Answer(
        None,
        "What to use is unknown. Left out: Eager (2 of 5 rows measured so far). Left out: torch.compile (2 of 5 rows measured "
        "so far).",
    )
    assert answer((EAGER, FAST), AXES, rows=2) == answer((EAGER, FAST), AXES)


def test_an_answer_stands_on_half_of_the_calls_at_least():
    doubtful = of("compile", dataclasses.replace(FAST.points[0], doubt="throttled"), FAST.points[1])
    assert answer((EAGER, doubtful), AXES) == Answer(
        None, "What to use is unknown: at batch 8, seq 512 torch.compile: throttled."
    )


def test_other_clocks_and_devices_are_no_comparison():
    cold = of("compile", *(dataclasses.replace(one, clocks_mhz=(1620,)) for one in FAST.points))
    assert answer((EAGER, cold), AXES) == Answer(
        None, "What to use is unknown: at batch 8, seq 512 the clocks differ (1,620 to 1,980 MHz)."
    )
    other = of("compile", *(dataclasses.replace(one, device="A") for one in FAST.points))
    assert "the devices differ (NVIDIA H200, A)" in answer((EAGER, other), AXES).sentence


def test_silent_eager_calls_memory_and_failures_are_on_the_bill():
    silent = dataclasses.replace(
        FAST.points[0], call=call(served=(), ran_eager=True, first_s=0.1), peak_memory_bytes=100
    )
    failed = dataclasses.replace(FAST.points[1], failure="Out of memory.", peak_memory_bytes=300)
    (bill,) = bills((of("compile", silent, failed),), AXES)
    assert (bill.eager_calls, bill.peak_bytes, bill.failures) == (100_001, 300, ("batch 16, seq 512: Out of memory.",))
    (bill,) = bills((of("compile", silent, dataclasses.replace(failed, call=None, peak_memory_bytes=None)),), AXES)
    assert (bill.eager_calls, bill.peak_bytes) == (None, None)


def test_nothing_measured_is_said():
    assert answer((), AXES) == Answer(None, "Nothing was measured yet.")


def test_rows_whose_pace_the_cpu_sets_are_told_with_the_answer():
    paced = dataclasses.replace(FAST.points[0], kernel_time_us=about(20.0))
    sentence = answer((EAGER, of("compile", paced, FAST.points[1])), AXES).sentence
    assert sentence.endswith(
        " At 1 of 2 rows the measuring machine's CPU sets the pace of some backend: a faster CPU may turn that."
    )
    assert "CPU" not in answer((EAGER, FAST), AXES).sentence
