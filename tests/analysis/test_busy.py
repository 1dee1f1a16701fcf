"""Unions, gaps and step windows."""

import pandas as pd
import pytest

from core.analysis.busy import busy_us_by_device, gaps, idle, step_windows, unprofiled_idle_us
from core.trace import read_trace
from tests.trace.build import annotation, copy, event, kernel, launch, op, trace, two_steps

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
    assert gaps(tables).empty
    assert list(gaps(tables).columns) == ["step", "device", "start_us", "dur_us", "after", "before", "row"]
    assert unprofiled_idle_us(tables, 10.0) is None
    none = idle(gaps(tables), None)
    assert (len(none.gaps), len(none.suspects), none.total_us, none.longest_us) == (0, 0, 0.0, 0.0)


def told(found):
    """The gaps without the rows of the trace, None for no step."""
    return [[None if pd.isna(one) else one for one in row] for row in found.drop(columns="row").values.tolist()]


def test_gaps_name_the_work_around_them():
    tables = read_trace(trace(*OVERLAPPING, kernel("f", None, 45.5, 1), kernel("long", None, 50, 30), kernel("in", None, 55, 1),
                              kernel("z", None, 85, 1), kernel("g", None, 9, 1, device=1)))  # fmt: skip
    assert told(gaps(tables)) == [
        [None, 0, 25.0, 15.0, "Memcpy DtoD", "c"],
        [None, 0, 46.5, 3.5, "f", "long"],
        [None, 0, 80.0, 5.0, "long", "z"],
        [None, 1, 3.0, 6.0, "d", "g"],
    ]
    assert gaps(tables, minimum_us=0.0)["dur_us"].tolist() == [15.0, 0.5, 3.5, 5.0, 6.0]
    names = tables.events["name"].to_pylist()
    assert [names[row] for row in gaps(tables)["row"]] == ["c", "long", "z", "g"]


GEMM, MUL = "ampere_sgemm_128x64_tn", "void at::native::vectorized_elementwise_kernel<4>"


def test_gaps_of_steps_and_between_them():
    assert told(gaps(read_trace(trace(*two_steps())))) == [
        [0, 0, 32.0, 3.0, "Memset (Device)", GEMM],
        [0, 0, 65.0, 3.0, GEMM, MUL],
        [None, 0, 78.0, 52.0, MUL, "Memset (Device)"],
        [1, 0, 132.0, 3.0, "Memset (Device)", GEMM],
        [1, 0, 166.0, 2.0, GEMM, MUL],
    ]


def test_a_gap_in_which_another_step_works_is_none():
    apart = [kernel("own", 11, 60, 1), kernel("own", 11, 90, 1)]
    tables = read_trace(
        trace(annotation("ProfilerStep#0", 0, 40), launch(11, 1, 1), annotation("ProfilerStep#1", 50, 40), launch(12, 51, 1),
              *apart, kernel("other", 12, 61, 29))
    )  # fmt: skip
    assert gaps(tables).empty


@pytest.mark.parametrize(
    ("unprofiled_us", "step", "suspects"),
    [
        (5.5, None, [3.0, 3.0]),
        (5.0, None, [3.0, 3.0]),
        (6.0, None, []),
        (4.0, 1, [3.0, 2.0]),
        (0.0, None, [3.0, 3.0, 3.0, 2.0]),
        (None, None, [3.0, 3.0, 3.0, 2.0]),
        (None, 0, [3.0, 3.0]),
    ],
)
def test_only_what_a_step_waits_for_longer_than_without_the_profiler_is_suspect(unprofiled_us, step, suspects):
    found = idle(gaps(read_trace(trace(*two_steps()))), unprofiled_us, step=step)
    assert found.suspects["dur_us"].tolist() == suspects
    assert (found.total_us, found.longest_us) == {None: (63.0, 52.0), 0: (6.0, 3.0), 1: (5.0, 3.0)}[step]
    assert found.unprofiled_us == unprofiled_us


def test_unprofiled_idle():
    tables = read_trace(trace(*two_steps()))
    assert unprofiled_idle_us(tables, 50.0) == 7.5  # less the median of 42 and 43 µs of work
    assert unprofiled_idle_us(tables, 40.0) == 0.0
    assert unprofiled_idle_us(tables, None) is None
    assert unprofiled_idle_us(read_trace(trace(*two_steps(), kernel("k", None, 1, 1, device=1))), 50.0) is None


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
