"""A winner is named only where every round says so and nothing else explains it."""

import dataclasses

import pytest

from core.analysis.findings import map_findings
from core.analysis.points import BUSY_HOST
from core.analysis.sizes import KERNEL_TIME, STEP_TIME
from core.analysis.winmap import Side, win_map
from tests.points import about, call, of, point, products

AXES = ("batch", "intermediate")


def rounds(name, *times, **changes):
    """A cell of one backend: a kernel time in µs a round; its step takes 40 µs more."""
    points = [
        point(name, 0, (8, 1024), call(served=()), roles={"activation": us}, step=us + 40.0, round=at, **changes)
        for at, us in enumerate(times)
    ]
    return of(name, *points)


def cell(*series, time=KERNEL_TIME):
    (found,) = win_map(series, AXES, time=time)
    return found


def verdict(*series, time=KERNEL_TIME):
    found = cell(*series, time=time)
    return found.verdict, found.words


LIGER = rounds("liger", 44.0, 44.2, 44.4)


def test_a_winner_is_ahead_in_every_round_by_more_than_the_noise():
    found = cell(rounds("eager", 66.0, 66.2, 66.4), rounds("compile", 35.0, 36.0, 35.2), LIGER)
    assert (found.verdict, found.winner, found.winner_title, found.runner_up) == (
        "wins",
        "compile",
        "torch.compile",
        "liger",
    )
    assert found.margin == pytest.approx(1 - 35.2 / 44.2)
    assert (
        found.words == "torch.compile: 20% less kernel time than Liger kernels, 35.0 to 36.0 µs against 44.0 to 44.4 µs"
    )
    assert (found.index, found.values, found.sizes) == (0, (8, 1024), "batch 8, intermediate 1,024")
    assert found.sides[1] == Side(
        series="compile",
        title="torch.compile",
        compiles=True,
        rounds_us=(35.0, 36.0, 35.2),
        median_us=35.2,
        low_us=35.0,
        high_us=36.0,
        samples=30,
        peak_bytes=None,
        run_ids=("compile-0", "compile-0-1", "compile-0-2"),
        why=None,
    )


def test_it_says_which_time_it_means():
    series = (rounds("compile", 35.0, 35.0, 35.0), LIGER)
    assert cell(*series).words.startswith("torch.compile: 21% less kernel time than")
    assert cell(*series, time=STEP_TIME).words.startswith("torch.compile: 11% less step time than")


def test_a_compile_that_straddles_another_backend_decides_nothing():
    found = cell(rounds("eager", 66.0, 66.2, 66.4), rounds("compile", 56.8, 37.0, 55.0), LIGER)
    assert (found.verdict, found.winner, found.margin) == ("depends", None, None)
    assert found.words == (
        "it depends on the compile: torch.compile takes 37.0 to 56.8 µs over its 3 cold compiles, Liger kernels 44.0 to 44.4 µs"
    )


def test_no_compile_is_luckless_where_the_devices_speed_changed():
    slow = rounds("compile", 56.8, 37.0, 55.0, products=products(170.0, "nvjet"))
    found = verdict(slow, rounds("liger", 44.0, 44.2, 44.4, products=products(150.0, "nvjet")))
    assert found == (
        "alike",
        "nobody is ahead beyond the noise: Liger kernels 44.0 to 44.4 µs; torch.compile 37.0 to 56.8 µs; the very same matrix "
        "products took 150 µs and 170 µs, so the device's speed changed within the profiles",
    )


def test_a_step_that_waits_for_the_cpu_is_marked():
    series = (rounds("compile", 35.0, 35.0, 35.0), LIGER)
    assert not cell(*series).paced
    assert cell(*series, time=STEP_TIME).paced
    found = map_findings(win_map(series, AXES, time=STEP_TIME), time="step time")
    assert found[1].endswith("(the CPU sets the pace there, not the GPU).")
    assert found[2] == (
        "In 1 of 1 cell steps of some backend wait for the CPU: there they tell of the machine's CPU as much as of the kernels."
    )
    filled = [rounds(name, us, us, us, step_us=about(us + 2.0)) for name, us in (("compile", 35.0), ("liger", 44.0))]
    assert not cell(*filled, time=STEP_TIME).paced


def test_a_step_that_straddles_may_be_the_hosts_doing():
    series = (rounds("compile", 56.8, 37.0, 55.0), LIGER)
    assert verdict(*series)[0] == "depends"
    assert verdict(*series, time=STEP_TIME) == (
        "alike",
        "nobody is ahead beyond the noise: Liger kernels 84.0 to 84.4 µs; torch.compile 77.0 to 96.8 µs",
    )


def test_a_step_that_the_cpu_paced_beside_other_sweeps_does_not_count():
    series = (rounds("compile", 35.0, 35.0, 35.0, beside_others=True), LIGER)
    assert verdict(*series)[0] == "wins"
    assert verdict(*series, time=STEP_TIME) == (
        "unknown",
        f"unknown: only 0 of the 3 rounds of torch.compile count ({BUSY_HOST})",
    )
    filled = rounds("compile", 35.0, 35.0, 35.0, beside_others=True, step_us=about(45.0))
    assert verdict(filled, LIGER, time=STEP_TIME)[0] == "wins"


def test_a_luckless_compile_does_not_matter_where_a_third_is_ahead_of_both():
    found = cell(rounds("eager", 30.0, 30.1, 30.2), rounds("compile", 56.8, 37.0, 55.0), LIGER)
    assert (found.verdict, found.winner, found.runner_up) == ("wins", "eager", "liger")


def test_a_wide_range_of_a_backend_that_does_not_compile_is_noise():
    assert verdict(rounds("eager", 37.0, 56.0, 41.0), LIGER)[0] == "alike"


@pytest.mark.parametrize(
    "times",
    [(43.5, 43.6, 43.7), (43.0, 44.1, 43.0), (44.0, 44.2, 44.4)],
    ids=["within two percent", "overlapping rounds", "equal"],
)
def test_no_difference_beyond_the_noise(times):
    found = verdict(rounds("compile", *times), LIGER, rounds("eager", 66.0, 66.2, 66.4))
    assert found[0] == "alike"
    assert found[1].startswith("nobody is ahead beyond the noise: torch.compile ")
    assert found[1].endswith("; slower: Eager")


@pytest.mark.parametrize(
    ("other", "why"),
    [
        (rounds("compile", 35.0, 35.0), "only 2 of the 3 rounds of torch.compile count"),
        (rounds("compile", 35.0, 35.0, 35.0, doubt="throttled"), "only 0 of the 3 rounds of torch.compile count (throttled)"),
        (rounds("compile", 35.0, 35.0, 35.0, failure="Out of memory."), "torch.compile failed: Out of memory."),
        (rounds("compile", 35.0, 35.0, 35.0, worst_error=0.5), "only 0 of the 3 rounds of torch.compile count (what was "
         "computed is not the layer)"),
        (rounds("compile", 35.0, 35.0, 35.0, worst_error=float("nan")), "only 0 of the 3 rounds of torch.compile count (what "
         "was computed is not the layer)"),
        (rounds("compile", 35.0, 35.0, 35.0, kernel_time_us=None), "only 0 of the 3 rounds of torch.compile count (its "
         "kernel time was not measured)"),
        (rounds("compile", 35.0, 35.0, 35.0, kernel_time_us=None, on_gpu=False), "only 0 of the 3 rounds of torch.compile "
         "count (its operator time was not measured)"),
        (rounds("compile", 35.0, 35.0, 35.0, clocks_mhz=(1620,)), "the clocks differ (1,620 to 1,980 MHz)"),
        (rounds("compile", 35.0, 35.0, 35.0, clocks_mhz=()), "the clocks were not read"),
        (rounds("compile", 35.0, 35.0, 35.0, device="A"), "the devices differ (A, NVIDIA H200)"),
        (of("compile"), "only 0 of the 3 rounds of torch.compile count"),
    ],
)  # fmt: skip
def test_nobody_is_named_where_something_else_explains_it(other, why):
    assert verdict(other, LIGER) == ("unknown", f"unknown: {why}")


def test_a_backend_that_ran_eager_is_not_itself():
    silent = [
        dataclasses.replace(one, call=call(served=(), ran_eager=True))
        for one in rounds("compile", 35.0, 35.0, 35.0).points
    ]
    assert verdict(of("compile", *silent), LIGER)[1].endswith("(it ran eager, without compiled code)")


def test_steps_that_vary_widely_are_no_step_time():
    wide = dataclasses.replace(about(75.0), p75=150.0)
    series = (rounds("compile", 35.0, 35.0, 35.0, step_us=wide), LIGER)
    assert verdict(*series)[0] == "wins"
    assert "vary widely" in verdict(*series, time=STEP_TIME)[1]


def test_a_fourth_sound_round_makes_up_for_a_doubtful_one():
    four = rounds("compile", 35.0, 35.0, 35.0, 60.0)
    points = [*four.points[:3], dataclasses.replace(four.points[3], doubt="throttled")]
    assert verdict(of("compile", *points), LIGER)[0] == "wins"


def test_on_a_cpu_nobody_reads_clocks():
    slow, fast = (
        rounds(name, us, us, us, on_gpu=False, clocks_mhz=()) for name, us in (("eager", 66.0), ("compile", 35.0))
    )
    assert verdict(slow, fast) == (
        "wins",
        "torch.compile: 47% less operator time than Eager, 35.0 µs against 66.0 µs",
    )
    assert verdict(slow, fast, time=STEP_TIME)[1].startswith("torch.compile: 29% less step time than Eager")


def test_one_backend_alone_is_compared_with_nothing():
    assert verdict(LIGER) == ("unknown", "unknown: there is nothing to compare it with")
    assert win_map((of("eager"), of("compile")), AXES, time=KERNEL_TIME) == ()
