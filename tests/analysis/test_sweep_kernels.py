"""Times against size, kernels that change with it, what open sizes cost, and what Liger's padding costs."""

import dataclasses

import pytest

from core.analysis.padding import padded_width, padding
from core.analysis.points import VARIES
from core.analysis.premium import premium
from core.analysis.sizes import (
    KERNEL_TIME,
    STEP_TIME,
    KernelChange,
    Memory,
    SizeTime,
    kernel_changes,
    memory,
    role_times,
    time_words,
    whole_times,
)
from tests.points import DIMS, ROLES, about, call, compiled, jit, kernel, of, point, products

AXES = ("batch",)
ACTIVATION = ROLES[2]
FUSED = "triton_poi_fused_gelu_mul_0"
LIGER = "_geglu_tanh_forward_kernel"


def test_a_time_says_all_that_a_mark_needs():
    found = point("compile", 0, (8, 512), call(served=(), ran_eager=True), roles={"activation": 37.0}, doubt="throttled",
                  kernels=(kernel(FUSED, "activation", "fused"),))  # fmt: skip
    (time,) = role_times((of("compile", found),), ("batch", "seq"), ROLES)
    assert time == SizeTime(
        run_id="compile-0",
        series="compile",
        title="torch.compile",
        index=0,
        round=0,
        values=(8, 512),
        sizes="batch 8, seq 512",
        x=4096,
        role="activation",
        time_us=about(37.0),
        kernels=(FUSED,),
        is_eager=True,
        doubt="throttled",
        clock_mhz=1980,
    )


def test_times_come_by_size_and_what_is_unknown_is_left_out():
    points = (
        point("eager", 0, 16, None, roles={"gate": 20.0}, step=30.0),
        point("eager", 1, 4, None, roles={"gate": 10.0}),
        point("eager", 2, 8, None, step=25.0),
    )
    series = (of("eager", *points),)
    assert [(one.x, one.time_us.median) for one in whole_times(series, AXES, KERNEL_TIME)] == [(4, 10.0), (16, 20.0)]
    assert [(one.x, one.time_us.median) for one in whole_times(series, AXES, STEP_TIME)] == [(8, 25.0), (16, 30.0)]


def test_memory_where_it_is_known():
    series = of("eager", point("eager", 0, 8, peak_memory_bytes=1 << 20), point("eager", 1, 16))
    assert memory((series,), AXES) == (Memory("eager-0", "eager", "Eager", (8,), "batch 8", 8, 1 << 20, None),)


def test_a_product_that_changes_its_tile_is_found_between_neighbours():
    def gate(index, batch, name, **changes):
        return point(
            "eager", index, batch, kernels=(kernel(name, "gate"), kernel("void f<a>(b)", "activation")), **changes
        )

    points = (
        gate(0, 64, "nvjet_256"),
        gate(1, 8, "nvjet_128"),
        gate(2, 16, "nvjet_128"),
        gate(3, 32, "nvjet_64", failure="Out of memory."),
    )
    assert kernel_changes((of("eager", *points),), AXES, ROLES) == (
        KernelChange(
            series="eager",
            title="Eager",
            role="gate",
            role_title="gate",
            run_id="eager-0",
            before="batch 16",
            after="batch 64",
            kernels_before=("nvjet_128",),
            kernels_after=("nvjet_256",),
            words="gate: nvjet_128 at batch 16, nvjet_256 at batch 64",
        ),
    )


def test_a_generated_kernel_of_another_graph_is_the_same_kernel():
    def fused(*names):
        kernels = [(kernel(name, "activation", "fused"),) for name in names]
        points = (
            point("compile", at, 8 << at, roles={"activation": 1.0}, on_gpu=False, kernels=own)
            for at, own in enumerate(kernels)
        )
        return of("compile", *points)

    again = fused("graph_0_cpp_fused_gelu_mul_0", "graph_1_cpp_fused_gelu_mul_0", "graph_12_cpp_fused_gelu_mul_0")
    assert kernel_changes((again,), AXES, ROLES) == ()
    assert {one.kernels for one in role_times((again,), AXES, ROLES)} == {("cpp_fused_gelu_mul_0",)}
    (other,) = kernel_changes((fused("graph_0_cpp_fused_gelu_mul_0", "graph_1_cpp_fused_mul_0"),), AXES, ROLES)
    assert (other.kernels_before, other.kernels_after) == (("cpp_fused_gelu_mul_0",), ("cpp_fused_mul_0",))


def test_a_cpu_has_operator_time():
    on_gpu, on_cpu = point("eager", 0, 8), point("eager", 0, 8, on_gpu=False)
    assert time_words(KERNEL_TIME, (on_gpu,)) == "kernel time"
    assert time_words(KERNEL_TIME, (on_cpu,)) == "operator time"
    assert time_words(STEP_TIME, (on_cpu,)) == "step time"


GENERATED = {"kernels": (kernel("triton_poi_fused_gelu_mul_0", "activation", "fused"),)}


def static(us=36.0, name="compile_static", **changes):
    changes = GENERATED | changes
    return of(name, point(name, 0, 8, call(compiled()), roles={"activation": us}, **changes))


def opened(us=40.0, name="compile_dynamic", found=None, **changes):
    found, changes = found or call(compiled(dynamic_dims=(DIMS[0],))), GENERATED | changes
    return of(name, point(name, 0, 8, found, roles={"activation": us}, **changes))


def told(*series, shared=True):
    return [(row.role, row.ratio, row.words) for row in premium(series, AXES, ROLES, shared=shared)]


def test_open_sizes_are_set_beside_static_ones():
    times = "40.0 µs with sizes left open (n 10), 36.0 µs for this size alone (n 10)"
    assert told(static(), opened()) == [
        ("activation", pytest.approx(40 / 36), f"activation: 11% more, {times}"),
        (None, pytest.approx(40 / 36), f"all kernels: 11% more, {times}"),
    ]
    (row, _) = premium((static(), opened()), AXES, ROLES, shared=True)
    assert (row.run_id, row.static_run_id, row.is_noise) == ("compile_dynamic-0", "compile_static-0", False)


def test_a_premium_within_the_noise_is_told_as_none():
    (row, _) = premium((static(36.0), opened(36.3)), AXES, ROLES, shared=True)
    assert row.is_noise
    assert row.words.startswith("activation: no difference beyond the noise, 36.3 µs")


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        (
            {"doubt": "the profiled steps never held the same kernels"},
            "compile, dynamic=True: the profiled steps never",
        ),
        ({"clocks_mhz": (1620,)}, "the clocks differ (1,620 to 1,980 MHz)"),
        ({"role_us": {"activation": about(80.0, by=0.9)}, "kernel_time_us": None}, VARIES),
        ({"role_us": {}, "kernel_time_us": None}, "compile, dynamic=True has no time for it"),
    ],
)
def test_a_premium_that_cannot_be_told_is_unknown(changes, why):
    found = told(static(), opened(**changes))
    assert [ratio for _, ratio, _ in found] == [None, None]
    assert found[0][2].startswith(f"activation: unknown, {why}")


def test_kernels_are_not_compared_across_a_change_of_the_devices_speed():
    slow = {"products": products(115.0, "nvjet")}
    assert told(static(products=products(100.0, "nvjet")), opened(**slow))[0][2] == (
        "activation: unknown, the very same matrix products took 100 µs and 115 µs, so the device's speed changed within the "
        "profiles"
    )
    assert told(static(products=products(100.0, "cutlass")), opened(**slow))[0][1] == pytest.approx(40 / 36)
    assert told(static(), opened(**slow))[0][1] == pytest.approx(40 / 36)
    (row,) = padded(inductor(products=products(100.0, "nvjet")), liger(**slow))
    assert row.ratio is None
    (row,) = padded(inductor(products=products(10.0, "nvjet")), liger(products=products(10.9, "nvjet")))
    assert row.ratio is not None  # times this short differ by as much


def test_a_librarys_kernels_and_a_cpus_operators_are_of_no_sizes():
    library = {"kernels": (kernel("nvjet", "activation"),)}
    assert told(static(**library), opened(**library)) == []
    on_cpu = {"on_gpu": False, "clocks_mhz": ()}
    assert told(static(**on_cpu), opened(**on_cpu)) == []


def test_differences_as_short_as_the_profilers_grain_are_noise():
    assert [row.is_noise for row in premium((static(1.856), opened(1.92)), AXES, ROLES, shared=True)] == [True, True]
    both = {"kernel_time_us": about(15.0)}, {"kernel_time_us": about(14.3)}  # its matrix products differ by as much
    rows = premium((static(1.8, **both[0]), opened(2.4, **both[1])), AXES, ROLES, shared=True)
    assert [row.is_noise for row in rows] == [False, True]


def test_a_point_that_ran_eager_is_on_neither_side():
    silent = call(served=(), ran_eager=True)
    assert told(static(), opened(found=silent)) == []
    eager = of("compile_static", point("compile_static", 0, 8, silent, roles={"activation": 36.0}))
    assert told(eager, opened()) == []


def test_what_was_marked_dynamic_is_no_static_side():
    marked = call(compiled(dynamic_dims=(DIMS[0],)))
    left_open = of("compile_static", point("compile_static", 0, 8, marked, roles={"activation": 36.0}))
    assert told(left_open, opened()) == []
    alone = dataclasses.replace(left_open, name="compile", title="torch.compile", dynamic=None)
    assert told(alone, opened(), shared=False) == []


def test_compile_left_to_itself_is_open_only_where_such_an_entry_served():
    entries = call(compiled("0/0"), compiled("0/1", dynamic_dims=(DIMS[0],)), served=("0/1",))
    assert len(told(static(), opened(name="compile", found=entries))) == 2
    assert told(static(), opened(name="compile", found=dataclasses.replace(entries, served_by=("0/0",)))) == []


def test_where_every_size_starts_fresh_compile_left_to_itself_is_static():
    alone = static(name="compile")
    assert [ratio for _, ratio, _ in told(alone, opened(), shared=False)] == [pytest.approx(40 / 36)] * 2
    assert told(alone, opened(), shared=True) == []
    assert told(opened()) == []


@pytest.mark.parametrize(
    ("width", "block", "padded"),
    [(11008, None, 16384), (16384, None, 16384), (1, None, 1), (65537, None, None), (65537, 32768, 98304), (14336, 1024, 14336)],
)  # fmt: skip
def test_rows_are_padded_to_whole_blocks(width, block, padded):
    assert padded_width(width, block) == padded


def liger(us=221.2, width=11008, found=None, **changes):
    kernels = (kernel(LIGER, "activation", "liger"),)
    return of(
        "liger",
        point("liger", 0, width, found or call(served=()), roles={"activation": us}, kernels=kernels, **changes),
    )


def inductor(us=126.0, width=11008, family="fused", **changes):
    kernels = (kernel(FUSED, "activation", family),)
    return of(
        "compile", point("compile", 0, width, call(compiled()), roles={"activation": us}, kernels=kernels, **changes)
    )


def padded(*series, axes=("intermediate",)):
    return padding(series, axes, ACTIVATION, width_name="intermediate")


def test_ligers_padding_beside_the_generated_kernel():
    (row,) = padded(inductor(), liger())
    assert (row.width, row.padded, row.is_read, row.idle) == (11008, 16384, False, pytest.approx(0.328125))
    assert (row.against, row.against_run_id, row.ratio, row.is_noise) == (
        "compile",
        "compile-0",
        pytest.approx(221.2 / 126),
        False,
    )
    assert row.words == (
        "intermediate 11,008: rows are padded to 16,384, 33% of the lanes idle; activation 221 µs (n 10) against 126 µs (n 10) "
        "on torch.compile, 1.76 times"
    )


def test_at_one_width_nothing_is_told_of_padding():
    (row,) = padded(liger(width=4096))
    assert (row.width, row.padded, row.idle) == (4096, 4096, 0.0)
    assert row.words == (
        "intermediate 4,096: no lane idles; activation against a generated kernel: unknown, no generated kernel was measured "
        "at this size"
    )
    assert padded(liger(width=8), axes=("batch",)) == ()


def test_the_block_is_read_off_the_jit_where_it_was_seen():
    (row,) = padded(liger(found=call(jits=(jit(BLOCK_SIZE=1024, n_cols=11008),), served=())))
    assert (row.padded, row.is_read) == (11264, True)
    (row,) = padded(liger(width=65537))
    assert (row.padded, row.idle) == (None, None)
    assert row.words.startswith(
        "intermediate 65,537: too wide for one block of 65,536, how its rows are cut is unknown;"
    )


@pytest.mark.parametrize(
    ("other", "why"),
    [
        (inductor(family="elementwise"), "no generated kernel was measured at this size"),
        (inductor(clocks_mhz=(1500,)), "the clocks differ (1,500 to 1,980 MHz)"),
        (inductor(doubt="throttled"), "torch.compile: throttled"),
        (inductor(role_us={}), "its time is unknown"),
        (inductor(role_us={"activation": about(80.0, by=0.9)}), VARIES),
    ],
)
def test_a_padding_that_cannot_be_set_beside_another_is_unknown(other, why):
    (row,) = padded(other, liger())
    assert (row.ratio, row.words.endswith(f"unknown, {why}")) == (None, True)


def test_padding_is_for_ligers_kernels_alone():
    assert padded(inductor()) == ()
    (row,) = padded(inductor(221.0), liger())
    assert row.is_noise
    assert row.words.endswith("no difference beyond the noise")
