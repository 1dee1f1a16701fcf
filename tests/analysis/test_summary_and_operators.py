"""trace_summary and operator_table: whole results of tiny traces."""

import json

import pandas as pd

from core.analysis.operators import COLUMNS, operator_table
from core.analysis.summary import trace_summary
from core.trace import read_trace
from tests.trace.build import event, kernel, op, trace, two_steps


def test_summary():
    summary = trace_summary(read_trace(trace(*two_steps(), kernel("late", 99, 500, None), {"ph": "i", "ts": 3})))
    assert json.loads(json.dumps(summary)) == {
        "n_events": 24,
        "n_kernels": 5,
        "n_memcpy": 0,
        "n_memset": 2,
        "kernel_time_us": 81.0,
        "gpu_busy_us_by_device": {"0": 85.0},
        "kernels_linked_to_launch": 4,
        "kernels_linked_to_op": 4,
        "kernels": [
            {"name": "ampere_sgemm_128x64_tn", "family": "gemm", "launches_per_step": 1.0, "n": 2, "median_us": 30.5,
             "min_us": 30.0, "max_us": 31.0, "sum_us": 61.0},
            {"name": "void at::native::vectorized_elementwise_kernel<4>", "family": "elementwise",
             "launches_per_step": 1.0, "n": 2, "median_us": 10.0, "min_us": 10.0, "max_us": 10.0, "sum_us": 20.0},
            {"name": "late", "family": "other", "launches_per_step": 0.0, "n": 0, "median_us": None, "min_us": None,
             "max_us": None, "sum_us": None},
        ],
        "notes": [
            "1 event without a usable duration: counted, but left out of all times.",
            "1 event on the GPU without a launch in the trace: shown, but belonging to no op and no step.",
        ],
    }  # fmt: skip


def operator(name, family, self_us, total_us, share, launches):
    """The row of an operator that ran once in each of two steps, always as long."""
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
    }


def test_operators():
    found = operator_table(read_trace(trace(*two_steps())))
    assert found.to_dict("records") == [
        operator("aten::addmm", "gemm", 30.0, 30.0, 0.5, 1.0),
        operator("aten::mul", "elementwise", 20.0, 20.0, 40 / 120, 1.0),
        operator("aten::linear", "op", 6.0, 40.0, 0.1, 0.0),
        operator("aten::t", "op", 4.0, 4.0, 8 / 120, 0.0),
    ]


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
