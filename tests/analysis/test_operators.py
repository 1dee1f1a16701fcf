"""operator_table and what a view does: whole rows of tiny traces, and PyTorch's own sums of a real profile."""

import json
from pathlib import Path

import pandas as pd
import pytest

from core.analysis.operators import COLUMNS, Transposed, argument, operator_table, sentence, transposed
from core.trace import read_trace
from tests.trace.build import annotation, copy, event, kernel, launch, op, trace, two_steps

SAMPLES = Path(__file__).resolve().parents[2].parent / "shared" / "h200_samples"


def operator(name, family, self_us, total_us, share, launches, device_us, device_total_us):
    """The row of an operator that ran once in each of two steps, always as long; GPU times are means over them."""
    same = dict.fromkeys(("median", "min", "max", "p25", "p75"), self_us)
    return {
        "name": name,
        "family": family,
        "calls_per_step": 1.0,
        "n": 2,
        **{f"self_{part}_us": value for part, value in same.items()},
        "self_sum_us": 2 * self_us,
        "total_median_us": total_us,
        "share": share,
        "launches": launches,
        "self_step_us": self_us,
        "total_step_us": total_us,
        "device_self_step_us": device_us,
        "device_total_step_us": device_total_us,
        "input_dims": None,
        "input_strides": None,
    }


def test_operators():
    found = operator_table(read_trace(trace(*two_steps())))
    assert found.to_dict("records") == [
        operator("aten::addmm", "gemm", 30.0, 30.0, 0.5, 1.0, 32.5, 32.5),
        operator("aten::mul", "elementwise", 20.0, 20.0, 40 / 120, 1.0, 10.0, 10.0),
        operator("aten::linear", "op", 6.0, 40.0, 0.1, 0.0, 0.0, 32.5),
        operator("aten::t", "op", 4.0, 4.0, 8 / 120, 0.0, 0.0, 0.0),
    ]


def test_gpu_time_of_what_nests_and_of_work_without_a_duration():
    tables = read_trace(
        trace(
            annotation("ProfilerStep#0", 0, 100),
            op("outer", 1, 50), op("middle", 2, 40), op("inner", 3, 30), launch(1, 4, 1), launch(2, 36, 1),
            op("unknown", 60, 20), launch(3, 61, 1), launch(4, 63, 1), op("nothing", 90, 5),
            kernel("a", 1, 200, 7), copy(2, 210, 2), kernel("b", 3, 220, None), kernel("c", 4, 230, 1),
        )
    )  # fmt: skip
    found = operator_table(tables).set_index("name")[["device_self_step_us", "device_total_step_us", "launches"]]
    assert found.loc[["outer", "middle", "inner", "nothing"]].values.tolist() == [
        [0.0, 9.0, 0.0],
        [2.0, 9.0, 0.0],
        [7.0, 7.0, 1.0],
        [0.0, 0.0, 0.0],
    ]
    assert found.loc["unknown"].isna().tolist() == [True, True, False]


def test_without_a_gpu_there_is_no_gpu_time():
    found = operator_table(read_trace(trace(annotation("ProfilerStep#0", 0, 9), op("a", 1, 2))))
    assert found[["device_self_step_us", "device_total_step_us"]].isna().all(axis=None)


def test_an_op_that_only_calls_one_of_its_name_is_one_call():
    tables = read_trace(
        trace(annotation("ProfilerStep#0", 0, 99), op("sum", 1, 20), op("sum", 2, 15), op("sum", 3, 10), op("fill", 4, 5),
              launch(1, 5, 1), launch(2, 16, 1), op("twice", 50, 20), op("twice", 51, 5), op("twice", 60, 5),
              kernel("a", 1, 100, 3), kernel("b", 2, 110, 4))
    )  # fmt: skip
    wanted = ["name", "n", "self_step_us", "total_step_us", "device_self_step_us", "device_total_step_us", "launches"]
    assert operator_table(tables)[wanted].values.tolist() == [
        ["twice", 3, 20.0, 30.0, 0.0, 0.0, 0.0],
        ["sum", 1, 15.0, 20.0, 4.0, 7.0, 1.0],
        ["fill", 1, 5.0, 5.0, 3.0, 3.0, 1.0],
    ]


SHAPED = (
    annotation("ProfilerStep#0", 0, 100),
    op("aten::mm", 1, 10, dims=[[2, 3], [3, 4]], strides=[[3, 1], [4, 1]]),
    op("aten::mm", 20, 20, dims=[[2, 3], [3, 4]], strides=[[3, 1], [1, 3]]),
    op("aten::mm", 50, 30, dims=[[8, 8], [8, 8]], strides=[[8, 1], [8, 1]]),
    op("aten::mm", 90, 5),
)


def test_by_input_shapes():
    tables = read_trace(trace(*SHAPED))
    wanted = ["input_dims", "input_strides", "calls_per_step", "total_step_us", "total_median_us"]
    assert operator_table(tables)[wanted].values.tolist() == [["3 different", "4 different", 4.0, 65.0, 15.0]]
    found = operator_table(tables, by_shapes=True)[wanted].values.tolist()
    assert [[None if pd.isna(one) else one for one in row] for row in found] == [
        ["[2, 3] [3, 4]", "2 different", 2.0, 30.0, 15.0],
        ["[8, 8] [8, 8]", "[8, 1] [8, 1]", 1.0, 30.0, 30.0],
        [None, None, 1.0, 5.0, 5.0],
    ]


@pytest.mark.parametrize("by_shapes", [False, True])
def test_the_sums_are_those_of_pytorchs_own_table(tmp_path, by_shapes):
    torch = pytest.importorskip("torch")
    layer, x = torch.nn.Sequential(torch.nn.Linear(32, 48), torch.nn.GELU(), torch.nn.Linear(48, 8)), torch.ones(4, 32)
    with (
        torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True) as profiler,
        torch.profiler.record_function("ProfilerStep#0"),
    ):
        for _ in range(3):
            layer(x).sum().backward()
    path = tmp_path / "trace.json"
    profiler.export_chrome_trace(str(path))
    ops = {one["name"] for one in json.loads(path.read_text())["traceEvents"] if one.get("cat") == "cpu_op"}
    theirs = {
        (one.key, " ".join(map(str, one.input_shapes)) if by_shapes else ""): one
        for one in profiler.key_averages(group_by_input_shape=by_shapes)
    }
    table = operator_table(read_trace(path), by_shapes=by_shapes)
    for row in table.fillna({"input_dims": ""}).itertuples():
        own = theirs[row.name, row.input_dims if by_shapes else ""]
        assert row.n == own.count
        assert row.self_sum_us == pytest.approx(own.self_cpu_time_total, abs=0.01 * row.n)
        assert row.total_step_us == pytest.approx(own.cpu_time_total, abs=0.01 * row.n)
    assert len(table) == sum(name in ops for name, _ in theirs)
    assert {"aten::addmm", "aten::t", "aten::sum", "autograd::engine::evaluate_function: AddmmBackward0"} <= ops


LINEAR = (
    op("aten::linear", 1, 40, dims=[[8, 32], [64, 32], [64]], strides=[[32, 1], [32, 1], [1]]),
    op("aten::t", 2, 10, dims=[[64, 32]], strides=[[32, 1]]),
    op("aten::transpose", 3, 5, dims=[[64, 32], [], []], strides=[[32, 1], [], []]),
    op("aten::addmm", 20, 15, dims=[[64], [8, 32], [32, 64], [], []], strides=[[1], [32, 1], [1, 32], [], []]),
    launch(1, 25, 2),
)


def test_what_a_view_does():
    on_gpu = transposed(read_trace(trace(*LINEAR, kernel("gemm", 1, 40, 5))))
    assert on_gpu == Transposed("aten::t", "aten::addmm", (32, 1), (1, 32), 0)
    assert sentence(on_gpu) == (
        "aten::t reads strides (32, 1) and aten::addmm reads (1, 32) from what it returned: aten::t moved no data and "
        "launched no kernel."
    )
    on_cpu = transposed(read_trace(trace(*LINEAR)))
    assert on_cpu.launched is None
    assert sentence(on_cpu).endswith("from what it returned: aten::t moved no data.")
    copied = transposed(read_trace(trace(*LINEAR, launch(2, 4, 1), kernel("gemm", 1, 40, 5), kernel("copy", 2, 30, 5))))
    assert sentence(copied).endswith("aten::t launched 1 piece of GPU work.")


def test_a_product_deeper_than_the_view_and_one_of_another_op():
    mm = op("aten::mm", 21, 9, dims=[[8, 32], [32, 64]], strides=[[32, 1], [1, 32]])
    matmul = op("aten::matmul", 20, 12, dims=[[8, 32], [32, 64]], strides=[[32, 1], [1, 32]])
    assert transposed(read_trace(trace(*LINEAR[:3], matmul, mm))).product == "aten::mm"
    elsewhere = {**mm, "ts": 60}
    assert transposed(read_trace(trace(*LINEAR[:3], elsewhere))) is None
    assert transposed(read_trace(trace(*LINEAR[:3], {**mm, "tid": 2}))) is None


@pytest.mark.parametrize(
    "product",
    [
        op("aten::mm", 20, 9, dims=[[8, 32], [32, 64]], strides=[[32, 1], [64, 1]]),
        op("aten::mm", 20, 9, dims=[[32, 64], [8, 32]], strides=[[1, 32], [32, 1]]),
        op("aten::mm", 20, 9, dims=[[8, 32]], strides=[[32, 1]]),
        op("aten::mm", 20, 9),
        op("aten::bmm", 20, 9, dims=[[8, 32], [32, 64]], strides=[[32, 1], [1, 32]]),
    ],
)
def test_no_product_reads_what_the_view_returned(product):
    assert transposed(read_trace(trace(*LINEAR[:3], product))) is None


@pytest.mark.skipif(not SAMPLES.is_dir(), reason="the shared sample traces are not here")
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("linear_eager", Transposed("aten::t", "aten::addmm", (768, 1), (1, 768), 0)),
        ("mlp_eager", Transposed("aten::t", "aten::mm", (768, 1), (1, 768), 0)),
        ("mlp_compiled", None),
    ],
)
def test_views_of_real_traces(name, expected):
    assert transposed(read_trace(SAMPLES / f"{name}.json.gz")) == expected


@pytest.mark.skipif(not SAMPLES.is_dir(), reason="the shared sample traces are not here")
def test_operators_of_a_real_trace():
    tables = read_trace(SAMPLES / "linear_eager.json.gz")
    found = operator_table(tables, by_shapes=True).set_index("name")
    addmm, linear = found.loc["aten::addmm"], found.loc["aten::linear"]
    assert addmm["input_dims"] == "[3072] [32768, 768] [768, 3072] [] []"
    assert (addmm["calls_per_step"], addmm["launches"], linear["launches"]) == (1.0, 1.0, 0.0)
    assert addmm["device_self_step_us"] == linear["device_total_step_us"] > 200
    assert found.loc["aten::view", "device_total_step_us"].tolist() == [0.0, 0.0]


def test_arguments():
    assert [argument("[64] [8, 32] [[2, 3]] [] [5]", position) for position in range(6)] == [
        (64,), (8, 32), (), (), (5,), (),
    ]  # fmt: skip


def test_operators_of_one_step_and_through_python_frames():
    tables = read_trace(
        trace(*two_steps(), op("outer", 300, 20), event("f", "python_function", 301, 18), op("in", 302, 5))
    )
    assert operator_table(tables, step=1)["n"].tolist() == [1, 1, 1, 1]
    everything = operator_table(tables).set_index("name")
    assert everything.loc["outer", "self_sum_us"] == 15.0
    assert everything.loc["outer", "calls_per_step"] == 0.0


def test_operators_without_steps_or_ops():
    (row,) = operator_table(read_trace(trace(op("a", 1, 2)))).to_dict("records")
    assert pd.isna(row["calls_per_step"]) and pd.isna(row["launches"])
    assert list(operator_table(read_trace(trace(kernel("k", 1, 1, 1)))).columns) == list(COLUMNS)
