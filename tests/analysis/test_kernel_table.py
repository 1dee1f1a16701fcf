"""kernel_table: whole rows, steps, identities, missing durations."""

import numpy as np
import pandas as pd

from core.analysis.kernels import COLUMNS, kernel_table, launch_notes
from core.trace import read_trace
from tests.trace.build import kernel, launch, op, trace, two_steps

GEMM, MUL = "ampere_sgemm_128x64_tn", "void at::native::vectorized_elementwise_kernel<4>"


def table(*events, **options):
    return kernel_table(read_trace(trace(*events)), **options)


def plain(frame):
    return [{key: None if pd.isna(value) else value for key, value in row.items()} for row in frame.to_dict("records")]


def test_whole_rows():
    assert plain(table(*two_steps())) == [
        {"name": "Memset (Device)", "family": "fill", "kind": "memset", "launches_per_step": 1.0, "n": 2,
         "median_us": 2.0, "min_us": 2.0, "max_us": 2.0, "p25_us": 2.0, "p75_us": 2.0, "sum_us": 4.0, "share": 4 / 85,
         "grid": None, "block": None, "registers": None, "shared_memory_bytes": None, "stream": 7, "device": 0,
         "n_events": 2},
        {"name": GEMM, "family": "gemm", "kind": "kernel", "launches_per_step": 1.0, "n": 2, "median_us": 30.5,
         "min_us": 30.0, "max_us": 31.0, "p25_us": 30.25, "p75_us": 30.75, "sum_us": 61.0, "share": 61 / 85,
         "grid": "8,1,1", "block": "128,1,1", "registers": 32, "shared_memory_bytes": 1024, "stream": 7, "device": 0,
         "n_events": 2},
        {"name": MUL, "family": "elementwise", "kind": "kernel", "launches_per_step": 1.0, "n": 2, "median_us": 10.0,
         "min_us": 10.0, "max_us": 10.0, "p25_us": 10.0, "p75_us": 10.0, "sum_us": 20.0, "share": 20 / 85,
         "grid": "8,1,1", "block": "128,1,1", "registers": 32, "shared_memory_bytes": 1024, "stream": 7, "device": 0,
         "n_events": 2},
    ]  # fmt: skip


def test_one_step():
    found = table(*two_steps(), step=1)
    assert found[["name", "n", "launches_per_step", "sum_us"]].values.tolist() == [
        ["Memset (Device)", 1, 1.0, 2.0],
        [GEMM, 1, 1.0, 31.0],
        [MUL, 1, 1.0, 10.0],
    ]


def test_uneven_steps_give_a_fraction():
    assert table(*two_steps(second_mul=False))["launches_per_step"].tolist() == [1.0, 1.0, 0.5]


def test_identity():
    events = (kernel("k", 1, 1, 1), kernel("k", 2, 3, 1, grid=(9, 1, 1)), kernel("k", 3, 5, 1, stream=8))
    assert table(*events)[["grid", "n"]].values.tolist() == [["8,1,1", 2], ["9,1,1", 1]]
    by_name = table(*events, by=("name",))
    assert plain(by_name[["grid", "block", "stream", "n"]]) == [
        {"grid": None, "block": "128,1,1", "stream": None, "n": 3}
    ]
    assert table(*events, by=("name", "stream"))["stream"].tolist() == [7, 8]


def test_without_steps_and_with_missing_durations():
    (row,) = plain(table(kernel("k", 1, 1, 4), kernel("k", 2, 9, None), kernel("k", 3, 19, -1)))
    assert (row["launches_per_step"], row["n"], row["n_events"], row["median_us"], row["share"]) == (
        None,
        1,
        3,
        4.0,
        1.0,
    )


def test_a_kernel_that_never_had_a_duration():
    (row,) = plain(table(kernel("k", 1, 1, None)))
    assert (row["n"], row["n_events"], row["median_us"], row["sum_us"], row["share"]) == (0, 1, None, None, None)


def test_order_is_that_inside_a_step():
    events = two_steps()
    extra = [op("late", 270, 5), launch(50, 271, 1), kernel("first in the file", 51, 1, 1), kernel("last", 50, 290, 1)]
    assert table(*events, *extra)["name"].tolist() == ["Memset (Device)", GEMM, MUL, "last", "first in the file"]


def test_no_gpu_work():
    found = table(op("a", 1, 1))
    assert found.empty
    assert list(found.columns) == list(COLUMNS)
    assert np.array_equal(found["sum_us"], [])


def test_launch_notes_say_what_the_trace_knows():
    tables = read_trace(trace(*two_steps()))
    every = launch_notes(tables, np.arange(tables.events.num_rows))
    assert set(every.values()) and all(text.startswith(("grid", "block")) for text in every.values())
    assert launch_notes(tables, np.array([], np.int64)) == {}
