"""Charts over a sweep's points: every mark opens its run, a backend has one colour, doubt and silent eager are seen."""

import dataclasses
import itertools

import numpy as np
import pytest

from core.analysis.breakeven import break_even
from core.analysis.padding import padding
from core.analysis.premium import premium
from core.analysis.recompiles import ledger
from core.analysis.sizes import KERNEL_TIME, memory, role_times, whole_times
from core.analysis.traffic import bills
from core.analysis.winmap import win_map
from core.backends import BACKENDS
from core.charts.lines import symbol
from core.charts.palette import BACKEND_COLOURS, backend_colours, mixed
from core.charts.recompiles import break_even_chart, compile_counts
from core.charts.shapes import against_size, padding_chart, peak_memory, premium_chart, role_stacks
from core.charts.traffic import traffic_chart
from core.charts.winmap import win_map_chart
from tests.points import BATCH_8_NOT_4, DIMS, ROLES, call, compiled, jit, kernel, limited, of, point

AXES = ("batch",)
LOOK = {"source": ["a card"], "dark": False}
DEFICIENCIES = {
    "none": np.eye(3),
    "protan": np.array([[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]]),
    "deutan": np.array([[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]]),
}
OPENED = compiled("0/1", misses=(BATCH_8_NOT_4,), dynamic_dims=(DIMS[0],))
SILENT = call(limited(), served=(), ran_eager=True, limit="recompile_limit")


@pytest.mark.parametrize("deficiency", DEFICIENCIES)
def test_backends_are_told_apart(deficiency):
    for one, other in itertools.combinations(BACKEND_COLOURS.values(), 2):
        seen = [
            np.clip(DEFICIENCIES[deficiency] @ (np.array([int(tint[i : i + 2], 16) for i in (1, 3, 5)]) / 255), 0, 1)
            for tint in (one, other)
        ]
        assert np.abs(seen[0] - seen[1]).max() > 0.15, (one, other)


def test_every_backend_has_a_colour_and_a_symbol_whoever_is_drawn_beside_it():
    names = [backend.name for backend in BACKENDS]
    assert list(BACKEND_COLOURS) == names
    assert backend_colours(["liger"])["liger"] == backend_colours(names)["liger"] == BACKEND_COLOURS["liger"]
    assert len({symbol(name) for name in names}) == len(names)
    strange = backend_colours(["liger", "one", "two", "one"])
    assert len(set(strange.values())) == 3
    assert symbol("one") not in {symbol(name) for name in names}


def runs(figure):
    """Run ids of all marks that can be picked."""
    return [
        custom[0] for one in figure.data for custom in (one.customdata if one.customdata is not None else ()) if custom
    ]


def test_times_against_size_show_spread_doubt_and_silent_eager():
    series = of(
        "compile",
        point("compile", 0, 8, call(compiled()), roles={"gate": 50.0}),
        point("compile", 1, 16, SILENT, roles={"gate": 90.0}),
        point("compile", 2, 4, call(served=("0/0",)), roles={"gate": 30.0}, doubt="<throttled>"),
    )
    figure = against_size(whole_times((series,), AXES, KERNEL_TIME), axis="batch", what="kernel time a step", **LOOK)
    line, marks = figure.data
    assert list(zip(line.x, line.y, strict=True)) == [(4, 30.0), (8, 50.0), (16, 90.0)]
    assert list(marks.marker.symbol) == ["square-open", "square", "x"]
    assert list(marks.error_y.array) == pytest.approx([30 * 0.0025, 50 * 0.0025, 90 * 0.0025])
    assert runs(figure) == ["compile-2", "compile-0", "compile-1"]
    assert list(marks.customdata[0][6:]) == [10, "<br>not compared: &lt;throttled&gt;"]
    assert "ran eager" in marks.customdata[2][7]
    assert {line.line.color, marks.marker.color} == {BACKEND_COLOURS["compile"]}
    assert (figure.layout.xaxis.title.text, figure.layout.yaxis.title.text) == ("batch", "kernel time a step, µs")
    assert (figure.layout.xaxis.type, figure.layout.yaxis.type) == ("linear", None)


def test_axes_are_logarithmic_where_sizes_or_times_span_decades():
    wide = of("eager", *(point("eager", at, 4**at, roles={"gate": 4.0**at}) for at in range(5)))
    figure = against_size(whole_times((wide,), AXES, KERNEL_TIME), axis="batch", what="time", **LOOK)
    assert (figure.layout.xaxis.type, figure.layout.yaxis.type) == ("log", "log")
    assert list(figure.layout.xaxis.tickvals) == [1, 4, 16, 64, 256]


def test_many_sizes_are_not_all_named_and_neighbours_not_twice():
    many = of("eager", *(point("eager", at, at + 1, roles={"gate": 5.0}) for at in range(40)))
    figure = against_size(whole_times((many,), AXES, KERNEL_TIME), axis="batch", what="time", **LOOK)
    assert figure.layout.xaxis.tickvals is None
    close = of(
        "eager", *(point("eager", at, size, roles={"gate": 5.0}) for at, size in enumerate((100, 101, 110, 400)))
    )
    figure = against_size(whole_times((close,), AXES, KERNEL_TIME), axis="batch", what="time", **LOOK)
    assert list(figure.layout.xaxis.tickvals) == [110, 400]


def test_a_size_measured_twice_is_two_marks_and_one_bend():
    twice = of("eager", *(point("eager", at, 8, roles={"gate": us}) for at, us in enumerate((10.0, 12.0))))
    line, marks = against_size(whole_times((twice,), AXES, KERNEL_TIME), axis="batch", what="time", **LOOK).data
    assert (list(line.y), list(marks.y)) == ([11.0], [10.0, 12.0])


def test_roles_are_stacked_in_the_order_of_the_list():
    series = [of(name, point(name, 0, 16, roles={"gate": 50.0, "activation": 9.0}), point(name, 1, 8, roles={"gate": 30.0}))
              for name in ("eager", "compile")]  # fmt: skip
    figure = role_stacks(role_times(series, AXES, ROLES), ROLES, axis="batch", **LOOK)
    assert [(bar.name, list(bar.x), list(bar.y), bar.showlegend) for bar in figure.data] == [
        ("gate", [1, 0], [30.0, 50.0], True),
        ("activation", [0], [9.0], True),
        ("gate", [1, 0], [30.0, 50.0], False),
        ("activation", [0], [9.0], False),
    ]
    assert list(figure.layout.xaxis2.ticktext) == ["16", "8"]
    assert figure.data[0].marker.color == figure.data[2].marker.color
    assert set(runs(figure)) == {"eager-0", "eager-1", "compile-0", "compile-1"}


def test_memory_stands_in_the_unit_of_its_table_and_no_line_falls_between_calls_of_one_size():
    peaks = ((8, 3_000_000), (16, 6_000_000), (8, 5_000_000))
    series = of("eager", *(point("eager", at, size, peak_memory_bytes=peak) for at, (size, peak) in enumerate(peaks)))
    figure = peak_memory(memory((series,), AXES), axis="batch", **LOOK)
    line, marks = figure.data
    assert (list(line.x), list(line.y)) == ([8, 16], [4.0, 6.0])
    assert (list(marks.x), list(marks.y)) == ([8, 8, 16], [3.0, 5.0, 6.0])
    assert figure.layout.yaxis.title.text == "peak memory, MB"
    assert runs(figure) == ["eager-0", "eager-2", "eager-1"]


def test_a_premium_is_a_line_a_role_and_hollow_where_it_is_noise():
    def series(name, activation_us):
        generated = (kernel("triton_poi_fused_gelu_mul_0", "activation", "fused"),)
        roles = {"activation": activation_us, "gate": 900.0}
        return of(name, point(name, 0, 8, call(compiled()), roles=roles, kernels=generated))

    static, opened = series("compile_static", 36.0), series("compile_dynamic", 45.0)
    figure = premium_chart(premium((static, opened), AXES, ROLES, shared=True), axis="batch", **LOOK)
    role, whole = figure.data
    assert (list(role.y), role.line.dash, list(role.marker.symbol)) == ([1.25], "solid", ["triangle-up"])
    assert (whole.line.dash, list(whole.marker.symbol)) == ("dash", ["triangle-up-open"])
    assert runs(figure) == ["compile_dynamic-0", "compile_dynamic-0"]


def test_padding_stands_beside_the_generated_kernel():
    def widths(name, family, *times):
        kernels = (kernel("k", "activation", family),)
        return of(name, *(point(name, at, width, call(served=("0/0",)), roles={"activation": us}, kernels=kernels)
                          for at, (width, us) in enumerate(zip((2048, 11008), times, strict=True))))  # fmt: skip

    rows = padding((widths("compile", "fused", 24.0, 126.0), widths("liger", "liger", 25.0, 221.0)), ("intermediate",), ROLES[2],
                   width_name="intermediate")  # fmt: skip
    liger, generated, idle = padding_chart(rows, **LOOK).data
    assert (list(liger.x), list(liger.y), liger.name) == ([2048, 11008], [25.0, 221.0], "Liger kernels")
    assert (list(generated.y), generated.name) == ([24.0, 126.0], "torch.compile")
    assert list(idle.y) == [0.0, pytest.approx(32.8125)]
    assert [custom[0] for custom in generated.customdata] == ["compile-0", "compile-1"]


def counted(*series):
    return compile_counts(ledger(series, AXES, shared=True), **LOOK)


def test_compiles_are_counted_call_by_call_with_marks_where_something_happened():
    series = of("compile", point("compile", 0, 4, call(compiled())), point("compile", 1, 8, call(OPENED)),
                point("compile", 2, 16, call(served=("0/1",))), point("compile", 3, 32, SILENT))  # fmt: skip
    figure = counted(series)
    line, marks = figure.data[:2]
    assert (list(line.y), line.line.shape) == ([1, 2, 2, 2], "hv")
    assert list(marks.marker.symbol) == ["circle", "diamond", "circle", "x"]
    assert list(marks.marker.size) == [13, 13, 5, 13]
    assert runs(figure) == [f"compile-{call}" for call in range(4)]
    assert marks.customdata[1][4] == (
        "recompiled<br>batch 8, and entry 0/0 was made for 4<br>batch may now vary<br>first call 2.00 s"
    )
    assert [one.name for one in figure.data[2:]] == ["compiled", "recompiled", "ran eager"]
    assert list(figure.layout.xaxis.ticktext) == ["1<br>4", "2<br>8", "3<br>16", "4<br>32"]


def test_lines_of_equal_counts_stand_apart_and_all_below_the_next_count():
    alike = of("compile", *(point("compile", at, at + 2, call(compiled(f"0/{at}"))) for at in range(9)))
    figure = counted(*(dataclasses.replace(alike, name=name) for name in list(BACKEND_COLOURS)[1:7]))
    first = [one.y[0] for one in figure.data if one.mode == "lines"]
    assert len(set(first)) == 6 and first == sorted(first)
    assert (first[0], first[-1]) == (1, pytest.approx(1.3))


def test_more_lines_of_source_have_room_below_the_chart():
    two, three = (peak_memory((), axis="batch", source=["a line"] * lines, dark=False).layout for lines in (2, 3))
    assert three.margin.b - two.margin.b == three.height - two.height > 12


def test_a_title_keeps_its_distance_from_wide_ticks():
    series = of("eager", point("eager", 0, 8, roles={"gate": 12_000.0}))
    figure = against_size(whole_times((series,), AXES, KERNEL_TIME), axis="batch", what="step", **LOOK)
    assert (figure.layout.yaxis.title.text, figure.layout.yaxis.title.standoff) == ("step, µs", 14)


def test_ligers_jits_are_its_line_and_backward_graphs_a_dotted_one():
    liger = of(
        "liger", point("liger", 0, 4, call(jits=(jit(),), served=())), point("liger", 1, 8, call(jits=(), served=()))
    )
    both = call(compiled(), compiled(backward=True))
    trained = of("compile", point("compile", 0, 4, both))
    figure = counted(liger, trained)
    assert list(figure.data[0].y) == [1, 1]
    dotted = next(one for one in figure.data if one.name == "torch.compile, backward")
    assert (dotted.line.dash, dotted.customdata[0][2]) == ("dot", 1)


def test_a_call_that_failed_stands_at_the_last_known_count():
    died = point("compile", 1, 8, failure="Its process died.")
    found = of(
        "compile", point("compile", 0, 4, call(compiled())), died, point("compile", 2, 16, call(served=("0/0",)))
    )
    figure = compile_counts(ledger([found], AXES, shared=True), **LOOK)
    line, marks, *_ = figure.data
    assert list(line.x) == [1, 3] and list(marks.x) == [1, 2, 3]
    assert (marks.marker.symbol[1], [row[3] for row in marks.customdata]) == ("square-x-open", ["1", "at least 1", "1"])


def test_a_call_that_is_unknown_has_no_mark_and_strange_texts_stay_text():
    series = of("compile", point("compile", 0, 4, None),
                point("compile", 1, 8, call(limited(limit=None, failed="<b>no</b>"), served=())))  # fmt: skip
    figure = counted(series)
    assert runs(figure) == ["compile-1"]
    assert "&lt;b&gt;no&lt;/b&gt;" in figure.data[1].customdata[0][4]


def test_a_line_crosses_zero_where_its_compile_has_paid():
    eager = of("eager", point("eager", 0, 8, call(served=()), step=100.0))
    pays = of("compile", point("compile", 0, 8, call(compiled(), first_s=2.0), step=80.0))
    noise = of("compile_static", point("compile_static", 0, 8, call(compiled(), first_s=1.0), step=100.1))
    unknown = of("liger", point("liger", 0, 8, None, step=80.0))
    found = break_even((eager, pays, noise, unknown), AXES)
    figure = break_even_chart(found, **LOOK)
    lines = {one.name: one for one in figure.data if one.mode == "lines" and one.name}
    assert list(lines) == ["torch.compile", "compile, dynamic=False"]
    assert lines["torch.compile"].y[0] == pytest.approx(-2.0, abs=1e-3)
    assert (lines["torch.compile"].line.dash, lines["compile, dynamic=False"].line.dash) == ("solid", "dash")
    (crossing,) = [one for one in figure.data if one.mode == "markers"]
    assert list(crossing.x) == [found[0].calls]
    texts = [one.text for one in figure.layout.annotations]
    assert "100,000 calls, torch.compile" in texts
    assert figure.layout.yaxis.title.text == "seconds ahead of Eager"


def cells():
    def cell(name, at, times):
        return [
            point(name, at, (8, 1024 * (at + 1)), call(served=()), roles={"activation": us}, round=n)
            for n, us in enumerate(times)
        ]

    flat = (44.0,) * 3
    compile_ = of("compile", *cell("compile", 0, (22.0,) * 3), *cell("compile", 1, flat), *cell("compile", 2, (37.0, 56.0, 55.0)),
                  *cell("compile", 3, flat))  # fmt: skip
    liger = of("liger", *cell("liger", 0, flat), *cell("liger", 1, flat), *cell("liger", 2, flat))
    return win_map((compile_, liger), ("batch", "intermediate"), time=KERNEL_TIME)


def test_a_cell_is_its_winners_or_hatched():
    figure = win_map_chart(cells(), ("batch", "intermediate"), time=KERNEL_TIME, **LOOK)
    legend, won, alike, depends, unknown = figure.data
    assert (legend.name, legend.marker.color) == ("torch.compile (1)", BACKEND_COLOURS["compile"])
    assert (list(won.text), won.marker.color[0]) == (["−50%"], mixed("#ffffff", BACKEND_COLOURS["compile"], 1.0))
    assert [(one.text[0], one.marker.pattern.shape, one.name) for one in (alike, depends, unknown)] == [
        ("=", "/", "= no difference beyond the noise (1)"),
        ("±", "x", "± depends on the compile (1)"),
        ("?", "", "? unknown (1)"),
    ]
    run_id, index, hover = won.customdata[0]
    assert (run_id, index) == ("compile-0", 0)
    assert hover.startswith("<b>batch 8, intermediate 1,024</b>, by kernel time<br>torch.compile: 50% less kernel time")
    assert "Liger kernels: 44.0 µs (44.0 µs), median of 3 rounds, n 30" in hover
    assert "Liger kernels: unknown, not measured" in unknown.customdata[0][2]
    assert list(figure.layout.yaxis.ticktext) == ["1,024", "2,048", "3,072", "4,096"]


def test_a_wider_margin_is_a_stronger_colour():
    def ahead_by(us):
        return of(
            "compile", *(point("compile", 0, (8, 1), call(), roles={"activation": us}, round=n) for n in range(3))
        )

    liger = of("liger", *(point("liger", 0, (8, 1), call(), roles={"activation": 44.0}, round=n) for n in range(3)))
    tints = [
        win_map_chart(
            win_map((ahead_by(us), liger), ("a", "b"), time=KERNEL_TIME), ("a", "b"), time=KERNEL_TIME, **LOOK
        )
        .data[1]
        .marker.color[0]
        for us in (42.0, 30.0, 10.0)
    ]
    green = [int(tint[3:5], 16) for tint in tints]  # less of it, less like the white ground
    assert green == sorted(green, reverse=True)
    assert len(set(green)) == 3


def test_traffic_stands_as_compiling_and_working_or_says_why_not():
    eager = of("eager", point("eager", 0, 8, call(served=(), first_s=0.0001), step=100.0, count=10_001))
    found = of("compile", point("compile", 0, 8, call(compiled(), first_s=2.0), step=80.0, count=10_001))
    failed = of("liger", point("liger", 0, 8, None, failure="<out of memory>"))
    figure = traffic_chart(bills((eager, found, failed), AXES), **LOOK)
    compiling, working, bounds, totals = figure.data
    assert list(compiling.x) == pytest.approx([0.0, 2.0 - 80e-6])
    assert list(working.x) == pytest.approx([1.0001, 0.8 + 80e-6])
    assert list(bounds.error_x.array) == pytest.approx([0.0025, 0.002], rel=1e-3)
    assert [one.strip() for one in totals.text] == ["1.00 s", "2.80 s"]
    assert list(figure.layout.yaxis.ticktext) == ["<b>Eager</b>", "<b>torch.compile</b>", "<b>Liger kernels</b>"]
    assert "unknown: it failed at batch 8: &lt;out of memory&gt;" in [one.text for one in figure.layout.annotations]
    assert compiling.customdata[1][0] == "compile"


@pytest.mark.parametrize("dark", [False, True])
def test_nothing_to_draw_is_an_empty_chart(dark):
    none = {"source": [], "dark": dark}
    figures = [
        against_size((), axis="batch", what="time", **none),
        role_stacks((), ROLES, axis="batch", **none),
        peak_memory((), axis="batch", **none),
        premium_chart((), axis="batch", **none),
        padding_chart((), **none),
        compile_counts((), **none),
        break_even_chart((), **none),
        win_map_chart((), ("a", "b"), time=KERNEL_TIME, **none),
        traffic_chart((), **none),
    ]
    assert [runs(figure) for figure in figures] == [[]] * len(figures)
