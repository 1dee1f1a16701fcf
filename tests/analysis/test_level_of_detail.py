"""Lanes without overlap, and a query that hides no span."""

import numpy as np
import pytest

from core.analysis.lanes import first_free_level, nesting_level
from core.analysis.lod import query, spans
from core.trace import read_trace
from tests.trace.build import annotation, event, kernel, launch, op, trace, two_steps


def found_spans(*events):
    return spans(read_trace(trace(*events)))


def rows(found):
    return [
        (found.lane_labels[lane], found.names[name], found.families[code], int(start), int(dur))
        for lane, name, code, start, dur in zip(
            found.lane, found.name, found.family_code, found.start_ns, found.dur_ns, strict=True
        )
    ]


def test_whole_lanes():
    found = found_spans(
        annotation("ProfilerStep#0", 0, 50),
        op("mm", 5, 10),
        op("inner", 6, 2),
        op("backward", 20, 5, tid=2),
        launch(1, 8, 1),
        launch(2, 21, 1, tid=2),
        kernel("nvjet_x", 1, 30, 10),
        kernel("k", 2, 35, 10),
        kernel("k", 3, 35, 1, stream=9),
        event("ProfilerStep#0", "gpu_user_annotation", 30, 15, pid=0, tid=7, stream=7, device=0),
        event("wait", "cuda_sync", 0, 99, pid=0, tid=7, stream=7, device=0),
        op("without duration", 90, None),
    )
    assert rows(found) == [
        ("100/1", "ProfilerStep#0", "annotation", 0, 50_000),
        ("100/1 · 1", "mm", "op", 5000, 10_000),
        ("100/1 · 2", "inner", "op", 6000, 2000),
        ("100/2", "backward", "op", 20_000, 5000),
        ("100/1: launches", "cudaLaunchKernel", "launch", 8000, 1000),
        ("100/2: launches", "cudaLaunchKernel", "launch", 21_000, 1000),
        ("GPU 0 stream 7: annotations", "ProfilerStep#0", "gpu_annotation", 30_000, 15_000),
        ("GPU 0 stream 7", "nvjet_x", "gemm", 30_000, 10_000),
        ("GPU 0 stream 7 · 1", "k", "other", 35_000, 10_000),
        ("GPU 0 stream 9", "k", "other", 35_000, 1000),
    ]
    assert found.lane_kinds == ("op", "op", "op", "op", "launch", "launch", "annotation", "gpu", "gpu", "gpu")
    assert found.offsets.tolist() == list(range(11))


def test_no_overlap_inside_a_lane_whatever_the_spans():
    random = np.random.default_rng(0)
    starts, durs = random.integers(0, 3000, 800), random.integers(0, 60, 800)
    events = [
        kernel("k", None, int(start), int(dur), stream=int(start) % 2) if start % 3 else op("a", int(start), int(dur))
        for start, dur in zip(starts, durs, strict=True)
    ]
    found = found_spans(*events)
    assert len(found.row) == 800
    same = found.lane[1:] == found.lane[:-1]
    assert np.all(found.start_ns[1:][same] >= found.end_ns[:-1][same])


def test_levels():
    start, end = np.array([0, 0, 1, 4, 5, 5]), np.array([10, 3, 3, 4, 9, 5])
    assert nesting_level(start, end).tolist() == [0, 1, 2, 1, 1, 2]
    start, end = np.array([0, 2, 4, 6]), np.array([5, 7, 5, 8])
    assert first_free_level(start, end).tolist() == [0, 1, 2, 0]


def busy_ns(found, view):
    """Per lane, the length that the view shows inside its window."""
    bin_ns = view.edges_ns[1] - view.edges_ns[0]
    total = np.nansum(view.busy, axis=1) * bin_ns
    begin = np.maximum(found.start_ns[view.rows], view.start_ns)
    end = np.minimum(found.end_ns[view.rows], view.end_ns)
    np.add.at(total, found.lane[view.rows], end - begin)
    return total


@pytest.mark.parametrize("window", [(0, 400_000), (50_000, 131_313), (399_000, 400_000), (-5000, 900_000)])
@pytest.mark.parametrize("width_px", [1, 7, 100, 1400])
def test_wide_spans_and_raster_together_show_all_the_time(window, width_px):
    found = found_spans(*two_steps(), *(kernel("k", None, 300 + i, 0.4, stream=9) for i in range(100)))
    view = query(found, *window, width_px=width_px)
    clipped = np.clip(found.end_ns, *window) - np.clip(found.start_ns, *window)
    expected = np.bincount(found.lane, clipped, len(found.lane_labels))
    assert busy_ns(found, view) == pytest.approx(expected, rel=1e-5, abs=1)
    bins = max(1, width_px // 2)
    assert view.busy.shape == view.count.shape == view.family_code.shape == (len(found.lane_labels), bins)
    assert np.all(found.dur_ns[view.rows] >= (window[1] - window[0]) / bins)
    assert np.array_equal(np.isnan(view.busy), view.family_code < 0)


def test_counts_and_the_family_that_fills_most():
    found = found_spans(
        kernel("nvjet_a", None, 0, 1), kernel("k", None, 1, 2), kernel("k", None, 40, 0), kernel("k", None, 95, 5)
    )
    view = query(found, 0, 100_000, width_px=20)
    assert view.rows.tolist() == []
    assert view.count.tolist() == [[2, 0, 0, 0, 1, 0, 0, 0, 0, 1]]
    assert [found.families[code] if code >= 0 else None for code in view.family_code[0]] == [
        "other", None, None, None, "other", None, None, None, None, "other"
    ]  # fmt: skip
    assert view.busy[0, [0, 4, 9]] == pytest.approx([0.3, 0.0, 0.5])


def test_a_narrow_span_across_two_bins_counts_once_and_fills_both():
    view = query(found_spans(op("first", 0, 0), kernel("k", None, 18, 5)), 0, 100_000, width_px=20)
    assert view.count.sum(axis=1).tolist() == [1, 1]
    assert view.busy[1, :4] == pytest.approx([np.nan, 0.2, 0.3, np.nan], nan_ok=True)


def test_a_trace_without_anything_to_draw():
    found = found_spans(event("x", "Trace", 1, 1))
    assert (len(found.row), found.lane_labels, query(found, 0, 100).rows.tolist()) == (0, (), [])
