"""Figures: every bar carries its event, the same kernel has the same colour, nothing narrow is hidden."""

import itertools

import numpy as np
import pytest

from core.analysis.busy import gaps
from core.analysis.chain import chain
from core.analysis.families import FAMILIES
from core.analysis.kernels import kernel_table
from core.analysis.lod import query, spans
from core.charts.kernels import kernel_times
from core.charts.lottery import Draw, lottery
from core.charts.palette import FAMILY_COLOURS, colour, shorten
from core.charts.timeline import Window, axis_unit, lane_titles, timeline
from core.trace import read_trace
from tests.runs import one_kernel_a_step
from tests.trace.build import kernel, launch, op, trace


@pytest.fixture
def tables():
    return read_trace(trace(*one_kernel_a_step(steps=2)))


def drawn(tables, start=0, end=200_000, **options):
    found = spans(tables)
    return timeline(found, query(found, start, end), Window(start, end, 0), dark=False, **options)


def bars(figure):
    return [custom for one in figure.data if one.type == "bar" for custom in one.customdata]


def test_each_bar_says_what_it_is_when_and_how_long(tables):
    shown = {tuple(custom[1:4]) for custom in bars(drawn(tables))}
    assert ("nvjet_bias_TNT", 50.0, 5.0) in shown
    assert ("aten::addmm", 110.0, 30.0) in shown
    assert len(bars(drawn(tables))) == tables.events.num_rows
    rows = [custom[0] for custom in bars(drawn(tables))]
    assert sorted(rows) == list(range(tables.events.num_rows))


def test_a_chain_lights_three_events_and_joins_them(tables):
    row = next(custom[0] for custom in bars(drawn(tables)) if custom[1] == "nvjet_bias_TNT")
    figure = drawn(tables, chain=chain(tables, row))
    lit = [
        custom[1] for one in figure.data if one.type == "bar" and one.marker.opacity == 1 for custom in one.customdata
    ]
    assert sorted(lit) == ["aten::addmm", "cudaLaunchKernel", "nvjet_bias_TNT"]
    joins = next(one for one in figure.data if one.name == "joins")
    assert [x for x in joins.x if x is not None] == [10.0, 20.0, 50.0]


def test_an_operators_chain_holds_every_kernel_below_it():
    tables = read_trace(
        trace(op("outer", 0, 100), op("inner", 10, 50), launch(1, 15, 2), launch(2, 30, 2), kernel("a", 1, 20, 5),
              kernel("b", 2, 40, 5))
    )  # fmt: skip
    found = chain(tables, 0)
    names = [tables.events["name"][row].as_py() for row in found.work]
    assert (names, len(found.launches), found.operator) == (["a", "b"], 2, 0)
    with pytest.raises(IndexError):
        chain(tables, 99)


def test_gaps_are_hatched_on_the_lane_of_the_work_that_ends_them():
    tables = read_trace(
        trace(kernel("a", 1, 0, 10), kernel("b", 2, 15, 5, stream=8), kernel("c", 3, 30, 10), kernel("d", 4, 42, 1, device=1),
              kernel("e", 5, 50, 1, device=1), kernel("f", 6, 41, 9))
    )  # fmt: skip
    found = gaps(tables)
    figure = drawn(tables, 0, 60_000, gaps=found, gap_note="what it may be")
    (hatch,) = [one for one in figure.data if one.name == "gaps"]
    assert hatch.marker.pattern.shape == "/"
    assert lane_titles(spans(tables)) == ["GPU 0 stream 7", "GPU 0 stream 8", "GPU 1 stream 7"]
    assert list(zip(hatch.base, hatch.x, hatch.y, strict=True)) == [
        (10.0, 5.0, 1),
        (20.0, 10.0, 0),
        (40.0, 1.0, 0),
        (43.0, 7.0, 2),
    ]
    assert hatch.customdata.tolist() == [[5.0], [10.0], [1.0], [7.0]]
    assert "what it may be" in hatch.hovertemplate


def test_gaps_too_narrow_to_see_or_out_of_sight_are_not_drawn():
    tables = read_trace(trace(kernel("a", 1, 0, 10), kernel("b", 2, 15, 5), kernel("c", 3, 10_000, 5)))
    found = gaps(tables)
    wide = drawn(tables, 0, 10_005_000, gaps=found)
    assert [list(one.x) for one in wide.data if one.name == "gaps"] == [[9980.0]]
    assert not [one for one in drawn(tables, 0, 9_000, gaps=found).data if one.name == "gaps"]
    assert not [one for one in drawn(tables, 0, 60_000, gaps=found.head(0)).data if one.name == "gaps"]


def test_what_is_too_narrow_to_draw_is_in_the_raster():
    many = [op(f"aten::op{i}", i, 0.5) for i in range(2000)]
    tables = read_trace(trace(op("outer", 0, 2000), *many))
    figure = drawn(tables, 0, 2_000_000)
    raster = next(one for one in figure.data if one.type == "heatmap")
    assert len(bars(figure)) == 1
    assert int(np.nansum(raster.customdata[:, :, 0])) == 2000
    zoomed = drawn(tables, 1_000_000, 1_020_000)
    assert {f"aten::op{i}" for i in range(1000, 1020)} <= {custom[1] for custom in bars(zoomed)}


def test_long_windows_count_in_ms():
    assert axis_unit(Window(0, 30_000_000, 0)) == ("ms", 1e6)
    assert axis_unit(Window(0, 3_000_000, 0)) == ("µs", 1e3)


def test_lanes_have_titles_people_know(tables):
    assert lane_titles(spans(tables)) == ["CPU operators", "", "Launch calls", "GPU 0 stream 7"]


def test_the_same_kernel_has_the_same_colour_in_every_chart(tables):
    name = "nvjet_bias_TNT"
    in_timeline = next(
        one.marker.color
        for one in drawn(tables).data
        if one.type == "bar"
        for custom in one.customdata
        if custom[1] == name
    )
    in_kernels = kernel_times(kernel_table(tables), source=(), dark=True).data[0].marker.color[0]
    assert in_timeline == in_kernels == colour("gemm", name)


def test_every_family_has_a_colour_of_its_own():
    keys = [key for key, _, _ in FAMILIES]
    assert set(keys) <= set(FAMILY_COLOURS)
    assert len({FAMILY_COLOURS[key] for key in keys}) == len(keys)


def simulated(hex_colour, matrix):
    """The colour as seen with a colour-vision deficiency (Machado, Oliveira and Fernandes 2009, severity 1)."""
    rgb = np.array([int(hex_colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.clip(matrix @ rgb, 0, 1)


DEFICIENCIES = {
    "protan": np.array([[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]]),
    "deutan": np.array([[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]]),
}


@pytest.mark.parametrize("deficiency", DEFICIENCIES)
def test_the_families_of_the_articles_charts_are_told_apart(deficiency):
    """Those that stand beside each other on the Explore page."""
    together = ("gemm", "fused", "liger", "elementwise", "fill", "launch")
    for one, other in itertools.combinations(together, 2):
        seen = [simulated(FAMILY_COLOURS[family], DEFICIENCIES[deficiency]) for family in (one, other)]
        assert np.abs(seen[0] - seen[1]).max() > 0.1, (one, other)


def test_long_names_are_cut_in_the_middle():
    assert shorten("short") == "short"
    cut = shorten("void at::native::vectorized_elementwise_kernel<8, at::native::GeluCUDAKernelImpl>", 40)
    assert cut == "vectorized_elementwi…GeluCUDAKernelImpl>"


def test_the_kernel_chart_says_medians_and_how_often(tables):
    bar, text = kernel_times(kernel_table(tables), source=(), dark=False).data
    assert list(bar.x) == [5.0]
    assert [one.strip() for one in text.text] == ["5.00 µs"]
    assert tuple(bar.customdata[0]) == ("nvjet_bias_TNT", 2, 5.0, 5.0)


def test_the_lottery_sets_the_truth_beside_what_the_tuner_saw():
    seen = (("XBLOCK 512, 8 warps", 128.0), ("b", 207.0))
    draws = [
        Draw("1, warm worker", "triton_x", "XBLOCK 512, 8 warps", 55.6, 55.0, 56.0, seen),
        Draw("2, fresh process", "triton_x", "unknown", None, None, None, ()),
    ]
    figure = lottery(draws, source=(), dark=False)
    assert list(figure.data[0].x) == [55.6]
    assert [list(one.x) for one in figure.data[1:]] == [[128.0], [207.0]]
    assert list(figure.layout.yaxis.ticktext) == ["2, fresh process", "1, warm worker"]
