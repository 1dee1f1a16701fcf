"""What a sweep shows, in sentences computed from its points: plurals right, and nothing compared that must not be."""

import dataclasses

import pytest

from core.analysis.findings import findings, map_findings
from core.analysis.ledger import GuardMiss, Products
from core.analysis.points import BUSY_HOST
from core.analysis.sizes import KERNEL_TIME
from core.analysis.winmap import win_map
from tests.points import BATCH_8_NOT_4, DIMS, ROLES, call, compiled, jit, kernel, limited, of, point, products

AXES = ("batch",)


def told(*series, shared=True, axes=AXES, width_name=None):
    return findings(series, axes, ROLES, shared=shared, limit=8, width_name=width_name, fixed={"seq": 128})


def points(name, *calls, batches=(4, 8, 16, 32, 64), **changes):
    return of(name, *(point(name, at, batches[at], found, **changes) for at, found in enumerate(calls)))


OPENED = compiled("0/1", misses=(BATCH_8_NOT_4,), dynamic_dims=(DIMS[0],))
ONE = GuardMiss("0/1", "2 <= x.size()[0]")


def test_two_compiles_and_then_no_more():
    found = told(points("compile", call(compiled()), call(OPENED), *[call(served=("0/1",))] * 3))
    assert found == ("torch.compile compiled twice over 5 calls and then no more: batch became dynamic at the 2nd.",)


def test_size_one_is_compiled_by_itself():
    calls = (call(compiled()), call(OPENED), call(compiled("0/2", misses=(ONE,))), call(served=("0/1",)))
    assert told(points("compile", *calls, batches=(4, 8, 1, 16))) == (
        "torch.compile compiled 3 times over 4 calls and then no more: batch became dynamic at the 2nd; last at the 3rd, for "
        "batch 1: "
        "entry 0/1 serves 2 and more (size 1 is always compiled by itself).",
    )


def test_sizes_left_open_from_the_start_may_meet_size_one():
    first, single = compiled(dynamic_dims=DIMS[:2]), compiled("0/1", misses=(GuardMiss("0/0", "2 <= x.size()[0]"),),
                                                              dynamic_dims=(DIMS[1],))  # fmt: skip
    calls = (call(first), call(single), call(served=("0/0",)))
    assert told(points("compile_dynamic", *calls, batches=(4, 1, 8))) == (
        "compile, dynamic=True compiled twice over 3 calls and then no more: batch and seq were left open from the start; last "
        "at the 2nd, for batch 1: entry 0/0 serves 2 and more (size 1 is always compiled by itself).",
    )


def test_one_entry_may_serve_them_all_and_one_call_is_one_call():
    assert told(points("compile_dynamic", call(compiled()), call(served=("0/0",)))) == (
        "compile, dynamic=True compiled once over 2 calls: its one entry served them all.",
    )
    assert told(points("compile", call(compiled()))) == ("torch.compile compiled once over 1 call.",)


def test_one_compile_is_not_said_to_serve_calls_that_it_did_not():
    later = points("compile", call(served=("0/0",)), call(compiled("0/1"), served=("0/0",)), call(served=("0/0",)))
    assert told(later) == ("torch.compile compiled once over 3 calls and then no more.",)
    two_frames = points("compile", call(compiled()), call(served=("0/0", "1/0")))
    assert told(two_frames) == ("torch.compile compiled once over 2 calls and then no more.",)


def test_a_compile_at_every_call_is_said_with_why():
    calls = (call(compiled()), call(compiled("0/1", misses=(BATCH_8_NOT_4,))))
    assert told(points("compile_static", *calls)) == (
        "compile, dynamic=False compiled twice over 2 calls, at every one of them: last at the 2nd, for batch 8, and entry "
        "0/0 was made for 4.",
    )


def test_silent_eager_comes_first():
    eager = call(limited(), served=(), ran_eager=True, limit="recompile_limit")
    later = call(served=(), ran_eager=True, limit="recompile_limit")
    found = told(points("compile_static", call(compiled()), call(compiled("0/1")), call(compiled("0/2")), eager, later))
    assert (
        found[0] == "compile, dynamic=False ran 2 of 5 sizes eager without a word: the limit of 8 was hit at batch 32."
    )
    assert told(points("compile", call(served=(), ran_eager=True))) == (
        "torch.compile ran 1 of 1 size eager without a word; why was not recorded.",
    )


def test_ligers_jits_are_one_a_width():
    width = of(
        "liger",
        *(point("liger", at, value, call(jits=(jit(),), served=())) for at, value in enumerate((2048, 4096, 8192))),
    )
    assert told(width, axes=("intermediate",), width_name="intermediate") == (
        "Liger kernels had Triton compile 3 times over 3 calls, 0.51 s in all: once for each new intermediate.",
    )
    assert told(width, axes=("intermediate",), width_name="intermediate", shared=False) == (
        "Liger kernels had Triton compile 3 times over 3 calls, 0.51 s in all.",
    )
    batch = points("liger", call(jits=(jit(None),), served=()), call(jits=(), served=()))
    assert told(batch, width_name="intermediate") == ("Liger kernels had Triton compile once over 2 calls.",)


def widths(name, family, *times, at=(2048, 11008), **changes):
    kernels = (kernel("k", "activation", family),)
    return of(
        name,
        *(
            point(name, index, width, call(served=("0/0",)), roles={"activation": us}, kernels=kernels, **changes)
            for index, (width, us) in enumerate(zip(at, times, strict=True))
        ),
    )


def test_the_worst_padding_is_told():
    found = told(widths("compile", "fused", 24.0, 126.0), widths("liger", "liger", 25.0, 221.0), axes=("intermediate",),
                 width_name="intermediate")  # fmt: skip
    assert found == (
        "At intermediate 11,008 the activation takes 1.75 times as long on Liger kernels as on torch.compile: its rows of 11,008 "
        "are padded to 16,384.",
    )


def test_padding_stands_beside_the_same_rows_with_nothing_to_pad():
    at = (11008, 16384)
    series = (widths("compile", "fused", 126.0, 180.0, at=at), widths("liger", "liger", 221.0, 222.0, at=at))
    assert told(*series, axes=("intermediate",), width_name="intermediate") == (
        "At intermediate 11,008 the activation takes 1.75 times as long on Liger kernels as on torch.compile: its rows of 11,008 "
        "are padded to 16,384 (at intermediate 16,384, with nothing to pad, 1.23 times).",
    )
    reversed_ = (widths("compile", "fused", 126.0, 120.0, at=at), widths("liger", "liger", 221.0, 222.0, at=at))
    assert told(*reversed_, axes=("intermediate",), width_name="intermediate") == (
        "At intermediate 16,384 the activation takes 1.85 times as long on Liger kernels as on torch.compile.",
    )


@pytest.mark.parametrize("liger_us", [(2.0, 44.4), (2.0, 30.0)])
def test_where_the_width_stays_nothing_is_blamed_on_the_padding(liger_us):
    series = (
        widths("compile", "fused", 1.0, 37.0, at=(1, 64)),
        widths("liger", "liger", *liger_us, at=(1, 64)),
    )
    assert (
        findings(series, AXES, ROLES, shared=False, limit=8, width_name="intermediate", fixed={"intermediate": 3072})
        == ()
    )


def test_doubtful_points_are_counted_and_never_compared():
    found = told(widths("compile", "fused", 24.0, 126.0, doubt="throttled"), widths("liger", "liger", 25.0, 221.0),
                 axes=("intermediate",), width_name="intermediate")  # fmt: skip
    assert found == ("2 of 4 points are compared with none of the others: throttled.",)
    one = told(of("eager", point("eager", 0, 4, doubt="throttled"), point("eager", 1, 8)))
    assert one == ("1 of 2 points is compared with none of the others: throttled.",)


def timed(name, factor=1.0, *, by=(), us=150.0, **changes):
    """Matrix products at two calls, at the second `factor` times as long."""
    return of(name, *(
        point(name, at, size, **({"products": products(own, *by)} | changes))
        for at, (size, own) in enumerate(((4, us), (8, us * factor)))
    ))  # fmt: skip


def test_matrix_products_alike_or_apart():
    assert told(timed("eager"), timed("liger", 1.01)) == (
        "The matrix products take the same time on all backends (within 2%) at 2 calls.",
    )
    assert told(timed("eager", by=["nvjet"]), timed("liger", 1.1, by=["cutlass"])) == (
        "The matrix products differ by more than 2% between backends at 1 of 2 calls, most at batch 8 (10%).",
    )
    assert not any("matrix" in one for one in told(timed("eager"), timed("liger", 1.1, clocks_mhz=(1620,))))
    assert told(timed("eager")) == ()
    assert told(timed("eager"), timed("liger", 1.1, products=None)) == ()
    failed = of("compile", *(point("compile", at, size, failure="It died.") for at, size in enumerate((4, 8))))
    assert told(timed("eager"), timed("liger"), failed)[0] == (
        "The matrix products take the same time on the backends that can be compared (Eager and Liger kernels) (within 2%) at "
        "2 calls."
    )


def test_a_sum_does_not_hide_the_one_that_is_apart():
    def both(name, up):
        times = (("gate", 100.0), ("up", up))
        return of(name, point(name, 0, 4, products=Products((("gate", "nvjet"), ("up", "nvjet")), times)))

    assert told(both("eager", 50.0), both("liger", 55.0)) == (
        "The matrix products take the same time on all backends (within 4%) by the very same kernels at 1 call; by itself, up is "
        "up to 10% apart (at batch 4).",
    )


def test_steps_that_outlast_their_kernels_are_told():
    long = point("eager", 0, 64, call(served=()), step=230.0, roles={"gate": 190.0})
    other = point("eager", 1, 128, call(served=()), step=320.0, roles={"gate": 300.0})
    rule = "whose step takes at most 1.3 times its kernels"
    assert told(of("eager", long, other)) == (
        f"At 1 of the 2 points {rule}, the step takes over 5% and 30 µs longer than these, up to 21%. Kernel times and step "
        "times may name different winners there.",
    )
    slower = dataclasses.replace(long, step_ends_us=(191.9, 228.0), step_clocks_mhz=(1980, 1700))
    found = told(of("eager", slower, other))[0]
    assert (
        "At 1 of these the steps get longer while they run back to back, from 1.01 to 1.20 times the kernels (first and last "
        "fifth of the burst, medians), which a short profile does not see; why is unknown (clocks read meanwhile: 1,700 to "
        "1,980 MHz). Kernel times"
    ) in found
    unread = dataclasses.replace(slower, step_clocks_mhz=())
    steady = dataclasses.replace(long, index=2, run_id="steady", step_ends_us=(230.0, 231.0))
    found = told(of("eager", unread, other, steady))[0]
    assert "why is unknown (nobody read the clocks meanwhile). At the other 1 the burst begins longer already" in found
    assert "get longer" not in told(of("eager", steady, other))[0]
    paced = point("eager", 3, 1, call(served=()), step=90.0, roles={"gate": 20.0})
    found = told(of("eager", long, other, paced))
    assert any(
        f"At 1 of the 2 points {rule} (at 1 more it takes longer than that: the CPU sets" in one for one in found
    )


def test_profiles_at_lower_clocks_are_counted():
    at = [point("eager", index, 4 + index, clocks_mhz=(mhz, mhz)) for index, mhz in enumerate((1980, 1965, 1635))]
    assert told(of("eager", *at)) == (
        "1 of 3 points was profiled at 1,635 MHz, the others at up to 1,980: their times are shown and not compared with those.",
    )


def test_the_very_same_matrix_products_at_other_times_are_another_speed_of_the_device():
    same = {"by": ["nvjet"]}
    assert told(timed("eager", **same), timed("liger", 1.04, **same)) == (
        "The matrix products take the same time on all backends (within 4%) by the very same kernels at 2 calls.",
    )
    assert told(timed("eager", us=9.0, **same), timed("liger", 1.1, us=9.0, **same)) == (
        "The matrix products take the same time on all backends (within 2%, 1 µs where they are short) by the very same "
        "kernels at 2 calls.",
    )
    assert told(timed("eager", **same), timed("liger", 1.15, **same)) == (
        "The matrix products take the same time on all backends (within 2%) by the very same kernels at 1 call.",
        "The device changed its speed within the profiles at 1 of 2 calls: at batch 8 the very same matrix products took "
        "up to 15% longer on one backend than on another. Kernel times that this sets apart are not compared.",
    )


def test_open_sizes_cost_something_or_nothing():
    made = {"kernels": (kernel("triton_poi_fused_gelu_mul_0", "activation", "fused"),)}

    def dynamic(us):
        return of("compile_dynamic", point("compile_dynamic", 0, 4, call(compiled()), roles={"activation": us}, **made))

    static = of("compile_static", point("compile_static", 0, 4, call(compiled()), roles={"activation": 36.0}, **made))
    assert told(static, dynamic(45.0))[-1] == (
        "With sizes left open the activation takes up to 25% more time (compile, dynamic=True against compile, dynamic=False, "
        "at batch 4, one compile each: the tuner's luck is in it); beyond the noise in 1 of 1 comparison."
    )
    assert (
        told(static, dynamic(36.1))[-1]
        == "Leaving sizes open costs nothing beyond the noise: activation, 1 comparison."
    )


def test_break_even_is_told_against_eager():
    eager = of("eager", point("eager", 0, 4, call(served=()), step=100.0))
    slow = of("compile", point("compile", 0, 4, call(compiled()), step=130.0))
    assert (
        told(eager, slow)[-1]
        == "torch.compile against Eager: never pays back: a step takes 30.0 µs more than on Eager."
    )
    assert not any("against Eager" in sentence for sentence in told(eager, slow, shared=False))


def test_steps_of_a_busy_host_are_counted_and_never_compared():
    paced = {"roles": {"activation": 50.0}, "beside_others": True}
    eager = of("eager", point("eager", 0, 4, call(served=()), step=100.0, **paced))
    quick = of("compile", point("compile", 0, 4, call(compiled()), step=60.0, **paced))
    assert told(eager, quick)[1:] == (
        f"The step times of 1 of 2 points are shown and compared with none: {BUSY_HOST}. Their kernel times are not touched by "
        "that.",
    )


def test_on_a_cpu_a_busy_host_touches_all_times():
    on_cpu = {"on_gpu": False, "clocks_mhz": (), "beside_others": True}
    assert told(of("eager", point("eager", 0, 4, call(served=()), step=100.0, **on_cpu))) == (
        f"The step times of 1 of 1 point are shown and compared with none: {BUSY_HOST}.",
    )


def test_tiles_graphs_and_failures():
    tiles = of("eager", *(point("eager", at, batch, kernels=(kernel(name, "gate"),))
                          for at, (batch, name) in enumerate(((4, "a"), (8, "a"), (16, "b")))))  # fmt: skip
    assert told(tiles) == (
        "The kernel of gate changes once with the size on Eager, first between batch 8 and batch 16.",
    )
    on_cpu = of("eager", *(dataclasses.replace(one, on_gpu=False, clocks_mhz=()) for one in tiles.points))
    assert told(on_cpu) == ()
    graphs = points("compile", call(served=("0/0",), cuda_graphs=1), call(served=("0/0",), cuda_graphs=2))
    assert told(graphs) == ("torch.compile recorded 3 CUDA graphs over 2 calls.",)
    failed = of("liger", point("liger", 0, 4, failure="Out of memory."), point("liger", 1, 8))
    assert told(failed) == ("Liger kernels failed at 1 of 2 points, first at batch 4: Out of memory.",)


def test_nothing_measured_is_nothing_to_say():
    assert told() == ()
    assert map_findings((), time=KERNEL_TIME) == ()


def cells(*times):
    """A map whose cells hold (compile's rounds, liger's rounds)."""
    series = [
        of(name, *(point(name, at, (8, at), call(served=()), roles={"activation": us}, round=number)
                   for at, pair in enumerate(times) for number, us in enumerate(pair[which])))
        for which, name in enumerate(("compile", "liger"))
    ]  # fmt: skip
    return win_map(series, ("batch", "intermediate"), time=KERNEL_TIME)


def test_a_map_counts_its_cells_and_names_the_widest_margin():
    flat, lottery = (44.0, 44.0, 44.0), (37.0, 56.0, 55.0)
    found = map_findings(cells(((22.0,) * 3, flat), ((40.0,) * 3, flat), (lottery, flat), (flat, flat), (flat, (44.0,))),
                         time=KERNEL_TIME)  # fmt: skip
    assert found == (
        "By kernel time, of 5 measured cells: ahead are torch.compile in 2; 1 has nobody ahead beyond the noise; 1 depends on "
        "the compile; 1 is unknown.",
        "The widest margin, at batch 8, intermediate 0, is that of torch.compile: 50% less kernel time than Liger kernels, "
        "22.0 µs against 44.0 µs.",
        "At batch 8, intermediate 2 it depends on the compile: torch.compile takes 37.0 to 56.0 µs over its 3 cold compiles, "
        "Liger kernels 44.0 µs.",
        "Why cells are unknown: rounds are missing in 1 cell.",
    )
    assert map_findings(cells((flat, flat)), time=KERNEL_TIME) == (
        "By kernel time, of 1 measured cell: nobody is ahead anywhere; 1 has nobody ahead beyond the noise.",
    )
    assert map_findings(cells((flat, flat), (flat, flat)), time=KERNEL_TIME) == (
        "By kernel time, of 2 measured cells: nobody is ahead anywhere; 2 have nobody ahead beyond the noise.",
    )
