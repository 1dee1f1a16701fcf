"""What the views of the Shapes page say of a sweep's rows, charts, code and progress, and what Home offers of sweeps."""

import json
from dataclasses import replace

import pytest
from streamlit.testing.v1 import AppTest

from core.conductor import Progress
from core.estimate import Rates
from core.store import runfile
from core.store.manifest import Device, Failure, Machine
from core.sweep import make_sweep, plan
from core.ui import session, shapes_code
from tests import sweeps
from tests.runs import H200
from tests.sweeps import point_file
from tests.ui import test_every_word as every_word
from tests.ui.test_shapes_page import ROOT, said, sound, viewing_only, visit  # noqa: F401  # the fixture belongs to every page test

WIDTHS = {**sweeps.BATCHES, "axis": "intermediate", "values": "2048,11008", "backends": "compile,liger,compile_liger"}
REPEATS = {**sweeps.BATCHES, "values": "4,8,4", "backends": "eager,compile"}
LINEAR = {"layer": "linear", "axis": "batch", "values": "4,8", "backends": "eager,compile"}


@pytest.fixture
def folder(home):
    """Where own sweeps lie."""
    return home / "sweeps"


@pytest.mark.parametrize(
    ("fields", "view"), [*((REPEATS, view) for view in ("pays", "step", "memory")), (WIDTHS, "padding")]
)
def test_every_heading_and_column_has_its_sentence(folder, fields, view):
    sweeps.write(folder, "one", fields)
    page = sound(visit(sweep="one", view=view))
    every_word.test_headings_have_their_sentence(page)
    every_word.test_columns_have_their_sentence(page)


@pytest.mark.parametrize(
    ("leave_out", "label"),
    [((), "Try again 1 run whose process died"), ((15,), "Resume: 2 of 16 runs are missing")],
)
def test_a_point_whose_process_died_can_be_tried_again(folder, monkeypatch, leave_out, label):
    sweeps.write(folder, "batches", sweeps.BATCHES, leave_out=leave_out)
    sweep = make_sweep(sweeps.BATCHES)
    died = {"status": "failed", "failure": Failure("crashed", "The process that measured this point died.")}
    (folder / "batches" / "0005.run.zip").write_bytes(point_file("batches", sweep, plan(sweep)[5], **died))
    resumed = []
    machine = Machine(H200, {"torch": "2.13.0"}, Rates({"bf16": 1e14, "fp32": 1e13}, 1e12, 2.0, 10**11), {})
    monkeypatch.setattr(session, "engine", object)
    monkeypatch.setattr(session, "machine", lambda: machine)
    monkeypatch.setattr(session, "resume_sweep", lambda sweep_id: resumed.append(sweep_id) or sweep_id)
    page = sound(visit(sweep="batches"))
    (button,) = [one for one in page.button if one.key == "shapes:start"]
    assert button.label == label
    sound(button.click().run())
    assert resumed == ["batches"]


def test_a_sweep_that_ends_while_its_page_is_drawn_is_drawn_whole(folder, monkeypatch):
    sweeps.write(folder, "batches", sweeps.BATCHES, leave_out=(15,))
    sweep = make_sweep(sweeps.BATCHES)
    told = []

    def progress(sweep_id):
        told.append(sweep_id)
        if len(told) == 1:  # the page has looked the sweep up, and begins to draw it
            (folder / "batches" / "0015.run.zip").write_bytes(point_file("batches", sweep, plan(sweep)[15]))
        return Progress("batches", "done", 16, 16)

    monkeypatch.setattr(session, "engine", object)
    monkeypatch.setattr(session, "sweep_progress", progress)
    page = sound(visit(sweep="batches"))
    assert told and not [text for text in said(page, "markdown") if "15 of 16 runs" in text]


def test_a_view_that_fails_leaves_the_way_to_delete(folder, monkeypatch):
    def failing(found):
        raise OverflowError("cannot convert float infinity to integer")

    sweeps.write(folder, "one", sweeps.BATCHES)
    monkeypatch.setattr("core.ui.shapes_views.show", failing)
    page = visit(sweep="one")
    assert not page.exception and any("Sorry" in text for text in said(page, "error"))
    assert any("Delete" in button.label for button in page.button)


def test_what_has_nothing_to_compile_stands_last(folder):
    sweeps.write(folder, "batches", sweeps.BATCHES)
    table = visit(sweep="batches").dataframe[-1].value
    assert list(dict.fromkeys(table["backend"])) == [
        "torch.compile",
        "compile, dynamic=False",
        "Liger kernels",
        "Eager",
    ]


def test_a_point_whose_process_died_hides_no_device(folder):
    sweeps.write(folder, "batches", sweeps.BATCHES)
    path = folder / "batches" / "0000.run.zip"
    failure = Failure("crashed", "It died.")
    died = replace(runfile.read_manifest(path), status="failed", failure=failure, device=Device("unknown", "unknown"))
    path.write_bytes(runfile.pack(died, None, {}))
    page = sound(visit(sweep="batches"))
    assert not any("unknown" in text.lower() for text in (*said(page, "markdown")[:5], *said(page, "caption")[:1]))
    assert all("NVIDIA H200" in option for option in page.selectbox(key="shape:at hand").options)


def test_sweeps_of_the_same_words_are_told_apart_and_none_is_deleted_for_another(folder, home):
    for width in (16, 17, 18):
        sweeps.write(folder, f"own-{width:06d}", {**sweeps.BATCHES, "hidden": str(width)})
    page = sound(visit(sweep="own-000017"))
    options = page.selectbox(key="shape:at hand").options
    assert len(set(options)) == 3 and all(
        one.endswith(f"0000{width}") for one, width in zip(sorted(options), (16, 17, 18), strict=True)
    )
    page.button(key="shapes:delete").click().run()
    (asked,) = [text for text in said(page, "markdown") if "will be deleted" in text]
    assert "hidden 17" in asked and "and Liger kernels, begun 2026-01-02 03:04 UTC" in asked
    page.button(key="shapes:delete").click()  # AppTest runs whole pages alone, and the dialog is a fragment of its own
    page.button(key="shapes:really").click().run()
    assert sorted(path.name for path in folder.iterdir() if not path.name.startswith(".")) == [
        "own-000016",
        "own-000018",
    ]


def test_a_press_of_delete_means_what_was_shown(folder):
    sweeps.write(folder, "own-1", sweeps.BATCHES)
    page = sound(visit(sweep="own-1"))
    page.session_state["shapes:delete asked"] = "own-2"  # the page came to another one meanwhile
    assert not any("will be deleted" in text for text in said(page.run(), "markdown"))


def offered(page):
    """The views that a visitor can choose from, by title."""
    return next(one.options for one in page.segmented_control if one.label == "View")


def test_padding_is_offered_where_the_width_changes(folder):
    sweeps.write(folder, "batches", sweeps.BATCHES)
    sweeps.write(folder, "widths", WIDTHS)
    assert "Padding" not in offered(sound(visit(sweep="batches", view="padding")))
    page = sound(visit(sweep="widths", view="padding"))
    assert "Padding" in offered(page) and page.subheader[0].value == "Liger's padded rows"
    table = page.dataframe[-1].value
    assert set(zip(table["backend"], table["width"], strict=True)) == {
        ("Liger kernels", 2048),
        ("Liger kernels", 11008),
    }


@pytest.mark.parametrize("view", ["pays", "kernels", "step", "memory"])
def test_rows_of_a_size_that_comes_again_have_the_number_of_their_call(folder, view):
    sweeps.write(folder, "again", REPEATS)
    sweeps.write(folder, "once", sweeps.BATCHES)
    table = sound(visit(sweep="again", view=view)).dataframe[-1].value
    of_compile = table[table["backend"] == "torch.compile"]
    assert set(zip(of_compile["call"], of_compile["sizes"], strict=True)) == {
        (1, "batch 4"),
        (2, "batch 8"),
        (3, "batch 4"),
    }
    assert "call" not in sound(visit(sweep="once", view=view)).dataframe[-1].value


def test_break_even_says_in_a_word_why_there_is_no_number(folder):
    sweeps.write(folder, "batches", sweeps.BATCHES)
    table = sound(visit(sweep="batches", view="pays")).dataframe[-1].value
    for _, row in table.iterrows():
        assert (row["verdict"] in ("pays back", "ahead until then")) == (row["calls"] == row["calls"])
        if row["verdict"] == "pays back":
            assert f"pays back after {row['calls']:,.0f} calls" in row["words"]
    assert {"pays back", "unknown"} <= set(table["verdict"])


def test_a_chart_carries_what_ran_how_often_and_what_its_whiskers_are(folder):
    sweeps.write(folder, "batches", sweeps.BATCHES)
    drawn = sound(visit(sweep="batches", view="step")).get("plotly_chart")[0].proto.spec
    texts = [one["text"] for one in json.loads(drawn)["layout"]["annotations"]]
    what, how, where = next(text for text in texts if "FusionScope" in text).split("<br>")
    assert what == "Gated MLP (GEGLU) over batch; sequence 128, hidden 768, intermediate 3,072, bf16, forward"
    assert how.startswith("unprofiled, n 4 steps a point; points: medians; whiskers: the middle half, 25% to 75%")
    assert where.startswith("NVIDIA H200")


def test_the_nearest_sweeps_are_of_layers_with_the_same_sizes_first(folder):
    swiglu = {**sweeps.BATCHES, "layer": "swiglu_mlp"}
    for name, fields in (("linear", LINEAR), ("swiglu", {**swiglu, "axis": "hidden"}), ("map", sweeps.MAP)):
        sweeps.write(folder, name, fields, leave_out=range(100))
    page = sound(visit(**swiglu, mode="isolated"))
    near = [one.proto.query_string for one in page.get("page_link") if "sweep=" in one.proto.query_string]
    assert [query.rpartition("sweep=")[2] for query in near] == ["swiglu", "map", "linear"]


def test_a_sweep_that_runs_has_no_count_beside_its_bar(folder, monkeypatch):
    sweeps.write(folder, "half", sweeps.BATCHES, leave_out=(14, 15))
    assert any("14 of 16 runs" in text for text in said(sound(visit(sweep="half")), "markdown"))
    running = Progress("half", "running", 15, 16)
    monkeypatch.setattr(session, "sweep_progress", lambda sweep_id: running)
    assert not any("14 of 16 runs" in text for text in said(sound(visit(sweep="half")), "markdown"))


def test_an_unfinished_map_says_how_many_cells_are_measured(folder):
    sweeps.write(folder, "map", sweeps.MAP, leave_out=range(27, 36))
    page = sound(visit(sweep="map"))
    assert any("3 of 4 cells measured, 3 rounds each, each compiled anew" in text for text in said(page, "markdown"))


def test_on_a_map_two_sizes_are_compared_and_equal_code_is_called_that(folder):
    sweeps.write(folder, "map", sweeps.MAP)
    page = sound(visit(sweep="map", view="entries"))
    first, second = (one for one in page.selectbox if one.label in ("Entry", "Compare with"))
    assert "batch 8 × intermediate 2,048" in first.options[first.value]
    assert "batch 8 × intermediate 11,008" in first.options[second.value]
    page.selectbox(key=second.key).set_value(1).run()
    assert any(text.startswith("Both have the same generated code") for text in said(sound(page), "caption"))


def test_two_entries_show_what_differs(folder):
    sweeps.write(folder, "batches", sweeps.BATCHES)
    page = sound(visit(sweep="batches", view="entries"))
    difference = page.code[0]
    assert difference.language == "diff" and "+    XBLOCK = 8" in difference.value
    page.segmented_control(key="shapes:entry:what").set_value("guards").run()
    assert "size=[8, None]" in sound(page).code[0].value


def test_lines_that_always_differ_are_no_difference():
    code = "# AOT ID: ['{0}_inference']\n# kernel path: /tmp/{0}.py\n    XBLOCK = 8"
    assert shapes_code._comparable(code.format(0)) == shapes_code._comparable(code.format(1)) == ["    XBLOCK = 8"]


def test_home_offers_a_map_and_traffic_and_counts_own_sweeps(folder, tmp_path):
    for axis in ("batch", "seq", "hidden", "intermediate"):
        sweeps.write(tmp_path / "shipped", axis, {**sweeps.BATCHES, "axis": axis, "backends": "eager,compile"})
    for name, fields in (("linear", LINEAR), ("map", sweeps.MAP), ("log", sweeps.TRAFFIC)):
        sweeps.write(tmp_path / "shipped", name, fields, leave_out=range(100))
    sweeps.write(folder, "own", sweeps.BATCHES)
    page = sound(AppTest.from_file(str(ROOT / "app.py"), default_timeout=60).run())
    links = [one.proto.query_string for one in page.get("page_link")]
    offered_ids = [query.rpartition("sweep=")[2] for query in links if "sweep=" in query]
    assert len(offered_ids) == 6 and offered_ids[-2:] == ["map", "log"]
    told = next(text for text in said(page, "markdown") if "of your own" in text)
    assert "7 recorded sweeps" in told and "0 runs and 1 sweep of your own" in told


def _tick():
    import streamlit as st

    from core.sweep import make_sweep
    from core.ui import shapes_panel

    likely = shapes_panel.Likely(120.0, 100.0, 1, 0, None)
    if not st.session_state.get("measuring"):
        values = st.session_state.get("values", "4,8")
        shapes_panel._allowed(make_sweep({"layer": "linear", "axis": "batch", "values": values}), likely)


def test_the_tick_for_a_long_sweep_outlives_its_progress_and_is_of_that_sweep_alone():
    page = AppTest.from_function(_tick).run()
    assert [one.value for one in page.caption] == ["Tick to allow it."]
    page.checkbox[0].check().run()
    assert page.checkbox[0].value and not page.caption
    page.session_state["measuring"] = True
    assert not page.run().checkbox
    page.session_state["measuring"] = False
    assert page.run().checkbox[0].value
    page.session_state["values"] = "4,8,16"
    assert not page.run().checkbox[0].value
