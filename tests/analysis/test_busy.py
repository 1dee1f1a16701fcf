"""Unions, gaps and step windows."""

import pandas as pd
import pytest

from core.analysis.busy import busy_us_by_device, gaps, step_windows
from core.trace import read_trace
from tests.trace.build import annotation, copy, event, kernel, op, trace, two_steps

OVERLAPPING = (
    kernel("a", None, 10, 10),
    kernel("b", None, 12, 2, stream=8),
    copy(None, 18, 7),
    kernel("c", None, 40, 5),
    kernel("d", None, 0, 3, device=1),
    kernel("e", None, 90, None),
    event("note", "gpu_user_annotation", 0, 99, pid=0, tid=7, stream=7, device=0),
)


@pytest.mark.parametrize(
    ("window_ns", "expected"),
    [
        (None, {0: 20.0, 1: 3.0}),
        ((0, 42_000), {0: 17.0, 1: 3.0}),
        ((13_000, 19_000), {0: 6.0, 1: 0.0}),
        ((50_000, 60_000), {0: 0.0, 1: 0.0}),
    ],
)
def test_busy(window_ns, expected):
    assert busy_us_by_device(read_trace(trace(*OVERLAPPING)), window_ns=window_ns) == expected


def test_no_gpu_work():
    tables = read_trace(trace(op("a", 1, 1)))
    assert busy_us_by_device(tables) == {}
    assert gaps(tables, 0).empty
    assert list(gaps(tables, 0).columns) == ["start_us", "dur_us", "after", "before"]


def test_gaps_name_the_work_around_them():
    tables = read_trace(trace(*OVERLAPPING, kernel("f", None, 45.5, 1), kernel("long", None, 50, 30), kernel("in", None, 55, 1),
                              kernel("z", None, 85, 1)))  # fmt: skip
    assert gaps(tables, 0).values.tolist() == [
        [25.0, 15.0, "Memcpy DtoD", "c"],
        [46.5, 3.5, "f", "long"],
        [80.0, 5.0, "long", "z"],
    ]
    assert gaps(tables, 0, minimum_us=0.0)["dur_us"].tolist() == [15.0, 0.5, 3.5, 5.0]


def test_gaps_of_a_step():
    tables = read_trace(trace(*two_steps()))
    assert gaps(tables, 0, step=0).values.tolist() == [
        [32.0, 3.0, "Memset (Device)", "ampere_sgemm_128x64_tn"],
        [65.0, 3.0, "ampere_sgemm_128x64_tn", "void at::native::vectorized_elementwise_kernel<4>"],
    ]
    assert gaps(tables, 0, step=7).empty


def test_step_windows():
    found = step_windows(read_trace(trace(*two_steps(), annotation("ProfilerStep#5", 400, 10))))
    assert [[None if pd.isna(value) else value for value in row] for row in found.values.tolist()] == [
        [0, 0, 80_000, 30_000, 78_000, 2, 40.0, 42.0],
        [1, 100_000, 180_000, 130_000, 178_000, 2, 41.0, 43.0],
        [5, 300_000, 310_000, None, None, 0, 0.0, 0.0],
    ]


def test_step_windows_without_steps():
    found = step_windows(read_trace(trace(op("a", 1, 1))))
    assert found.empty
    assert list(found.columns)[:3] == ["step", "start_ns", "end_ns"]
