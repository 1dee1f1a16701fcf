"""The Shapes page on sweeps at hand: every kind and view, links, what is missing or strange, and what leaves the page."""

import csv
import io
import re
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from core.store.sweeps import Sweeps
from core.sweep import to_sweep_fields
from core.ui import session, shapes_data, shapes_ledger
from tests import sweeps
from tests.ui import test_every_word as every_word

ROOT = Path(__file__).resolve().parents[2]
PAGE = "pages/2_Shapes.py"
HOSTILE = "![x](http://127.0.0.1:9/x.png) [press](http://evil.example) $x^2$ `b` :red[r] <b>h</b> **s**"
#: Markdown that would do something: not escaped by a backslash.
ALIVE = re.compile(r"(?<!\\)(?:!\[|\]\(http|\$x|:red\[|<b>|\*\*s)")


@pytest.fixture(autouse=True)
def viewing_only(home, monkeypatch, tmp_path):
    """A small install with a store of its own, and no shipped sweeps."""
    monkeypatch.setattr(session, "can_run", lambda: False)
    own = Sweeps(home, recordings=tmp_path / "shipped")
    monkeypatch.setattr(session, "sweeps", lambda: own)
    shapes_data._shown.clear()
    yield
    shapes_data._shown.clear()


@pytest.fixture
def folder(home):
    """Where own sweeps lie."""
    return home / "sweeps"


def visit(**link):
    page = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60).switch_page(PAGE)
    for name, value in link.items():
        page.query_params[name] = str(value)
    return page.run()


def raw(page, *kinds):
    kinds = kinds or ("header", "subheader", "markdown", "caption", "warning", "error", "info", "success")
    return [element.value for kind in kinds for element in getattr(page, kind)]


def said(page, *kinds):
    """Every sentence as it reads, with nothing escaped."""
    return [re.sub(r"\\(.)", r"\1", text).replace("\u2060", "") for text in raw(page, *kinds)]


def sound(page):
    assert not page.exception
    assert not any("Sorry" in text for text in said(page, "error"))
    return page


def picked(page, name):
    """The link-worthy state of a picker."""
    return page.session_state[f"shape:{name}"]


SWEEP_VIEWS = ("recompiles", "pays", "kernels", "step", "memory", "premium", "entries")


@pytest.mark.parametrize("view", SWEEP_VIEWS)
def test_every_view_of_a_sweep_is_drawn(folder, view):
    sweeps.write(folder, "batches", sweeps.BATCHES)
    page = sound(visit(sweep="batches", view=view))
    assert page.header[0].value == "Gated MLP (GEGLU): batch changes"
    assert len(page.get("plotly_chart")) == {"entries": 0, "kernels": 2}.get(view, 1)
    assert page.query_params["view"] == [view] or page.query_params["view"] == view
    assert not page.warning


@pytest.mark.parametrize("view", ["map", "recompiles", "entries"])
@pytest.mark.parametrize("by", ["kernel", "step"])
def test_every_view_of_a_win_map_is_drawn(folder, view, by):
    sweeps.write(folder, "map", sweeps.MAP)
    page = sound(visit(sweep="map", view=view, by=by))
    assert page.header[0].value == "Gated MLP (GEGLU): who wins over batch × intermediate"
    if view == "map":
        assert page.subheader[0].value == f"Who takes less {by} time?"
        assert any(text.startswith(f"**1.** By {by} time, of 4 ") for text in said(page, "markdown"))


@pytest.mark.parametrize("view", ["costs", "recompiles", "pays", "kernels", "step", "memory", "entries"])
def test_every_view_of_traffic_is_drawn(folder, view):
    sweeps.write(folder, "log", sweeps.TRAFFIC)
    page = sound(visit(sweep="log", view=view))
    assert page.header[0].value == "Gated MLP (GEGLU): your traffic"
    assert any("4,180" in text for text in said(page, "markdown"))


@pytest.mark.parametrize(
    ("fields", "view"),
    [
        *((sweeps.BATCHES, view) for view in SWEEP_VIEWS),
        (sweeps.MAP, "map"),
        (sweeps.TRAFFIC, "costs"),
    ],
)
def test_every_heading_column_and_picker_has_its_sentence(folder, fields, view):
    sweeps.write(folder, "one", fields)
    page = sound(visit(sweep="one", view=view))
    every_word.test_headings_have_their_sentence(page)
    every_word.test_columns_have_their_sentence(page)
    every_word.test_pickers_have_their_sentence(page)


def test_the_ledger_says_what_each_call_did(folder):
    sweeps.write(folder, "batches", sweeps.BATCHES)
    table = sound(visit(sweep="batches")).dataframe[-1].value
    of = {(row["backend"], row["call"]): row["outcome"] for _, row in table.iterrows()}
    compiled = [of["torch.compile", call] for call in (1, 2, 3, 4)]
    assert compiled == ["compiled", "recompiled", "reused 0/1", "reused 0/1"]
    assert of["compile, dynamic=False", 3] == "ran eager, limit hit"
    assert of["Liger kernels", 1] == "Triton JIT, 0.17 s"
    assert of["Eager", 4] == "failed: The GPU's memory did not suffice."
    why = table[(table["backend"] == "torch.compile") & (table["call"] == 2)]["why"].iloc[0]
    assert why == "batch 8, and entry 0/0 was made for 4"


def test_a_ledger_row_opens_its_run_and_tells_dynamos_words(folder):
    sweeps.write(folder, "batches", sweeps.BATCHES)
    page = visit(sweep="batches")
    key = "shapes:ledger:batches:eager,compile,compile_static,liger"
    page.session_state[key] = {"selection": {"rows": [1], "columns": [], "cells": []}}
    page = sound(page.run())
    assert any("tensor 'x' size mismatch at index 0. expected 4, actual 8" in text for text in said(page))
    link = next(one.proto for one in page.get("page_link") if "Timeline of torch" in one.proto.label)
    assert "run=batches-0005" in link.query_string


def test_the_ledger_as_csv_carries_run_device_and_versions(folder):
    sweeps.write(folder, "batches", sweeps.BATCHES)
    found = shapes_data.shown(session.sweeps().get("batches"))
    rows = shapes_ledger.rows(found)
    read = list(csv.DictReader(io.StringIO(shapes_ledger.as_csv(shapes_ledger.csv_frame(rows), found).decode())))
    assert len(read) == 16
    assert (read[5]["run"], read[5]["device"], read[5]["torch"]) == ("batches-0005", "NVIDIA H200", "2.11.0")
    assert (read[5]["kind"], read[5]["missed_entries"], read[5]["served_by"]) == ("recompiled", "0/0", "0/1")


def test_the_failed_point_is_named_with_its_sentence(folder):
    sweeps.write(folder, "batches", sweeps.BATCHES)
    page = visit(sweep="batches")
    assert "Eager at batch 32 (call 4): The GPU's memory did not suffice." in said(page, "markdown")


def test_the_link_is_the_state_and_the_pickers_stand_at_it(folder):
    sweeps.write(folder, "batches", sweeps.BATCHES)
    page = sound(visit())
    assert page.query_params["sweep"] in ("batches", ["batches"])
    assert (picked(page, "values"), picked(page, "limit")) == ("4, 8, 16, 32", "2")
    assert picked(page, "backends") == ["eager", "compile", "compile_static", "liger"]
    again = sound(visit(**to_sweep_fields(found("batches"))))
    assert again.header[0].value == page.header[0].value
    assert not again.warning


def found(sweep_id):
    return session.sweeps().get(sweep_id).head.sweep


@pytest.mark.parametrize(
    ("link", "sentence"),
    [
        ({"sweep": "gone"}, "The sweep gone is not on this machine; one that is here is shown."),
        ({"kind": "cube"}, "The link asks for kind 'cube', which is not one of sweep, map, traffic."),
        ({"layer": "conv"}, "The link asks for layer 'conv', which is not one of"),
        ({"axis": "depth"}, "The link asks for axis 'depth', which is not one of batch"),
        ({"values": "1,two"}, "'two' is not"),
        ({"values": ""}, "The list of sizes for batch is empty"),
        ({"backends": "eager,jax"}, "The link asks for the backend 'jax'"),
        ({"colour": "red"}, "The link names 'colour'"),
        ({"kind": "map", "axis2": "batch"}, "The two axes of a win map are the same"),
        ({"kind": "traffic", "rows": "1,2"}, "is not batch, seq, count"),
        ({"kind": "traffic", "layer": "matmul_add"}, "has no batch, so no traffic can be replayed on it"),
        ({"mode": "sideways"}, "The link asks for mode 'sideways'"),
        ({"mark": "perhaps"}, "The link asks for mark 'perhaps'"),
        ({"limit": "0"}, "The recompile limit must be a whole number from 1"),
        ({"steps": "x" * 5000}, "Steps must be a whole number"),
        ({"sweep": "batches", "values": "3,5"}, "The sweep batches is of other sizes than the link names"),
    ],
)
def test_a_bad_link_is_one_sentence(folder, link, sentence):
    sweeps.write(folder, "batches", sweeps.BATCHES)
    page = sound(visit(**link))
    assert any(sentence in text for text in said(page, "warning")), said(page, "warning")


@pytest.mark.parametrize("link", [{"view": "everything"}, {"by": "luck"}])
def test_a_view_that_is_none_is_the_first(folder, link):
    sweeps.write(folder, "map", sweeps.MAP)
    page = sound(visit(sweep="map", **link))
    assert page.subheader[0].value == "Who takes less kernel time?"


def test_an_empty_store_says_how_to_begin():
    page = sound(visit())
    assert any("There are no sweeps here yet" in text for text in said(page, "info"))
    assert any("Not run yet" in text for text in said(page, "warning"))
    assert any("small install" in text for text in said(page, "caption"))


def test_a_list_nobody_ran_keeps_the_last_picture_and_offers_the_nearest(folder):
    sweeps.write(folder, "batches", sweeps.BATCHES)
    sweeps.write(folder, "map", sweeps.MAP)
    page = visit(sweep="batches")
    page.text_input(key="shape:values").set_value("5, 6").run()
    assert any("Not run yet: Gated MLP (GEGLU), batch sweep, 2 points" in text for text in said(page, "warning"))
    assert sound(page).header[0].value == "Gated MLP (GEGLU): batch changes"
    assert "sweep" not in page.query_params
    assert any("who" in one.proto.label or "cells" in one.proto.label for one in page.get("page_link"))


def test_bad_input_is_one_sentence_and_the_picture_stays(folder):
    sweeps.write(folder, "batches", sweeps.BATCHES)
    page = visit(sweep="batches")
    page.text_input(key="shape:values").set_value("4, eight").run()
    assert len(said(page, "warning")) == 1 and "'eight'" in said(page, "warning")[0]
    assert sound(page).header[0].value == "Gated MLP (GEGLU): batch changes"
    page.multiselect(key="shape:backends").set_value([]).run()
    assert said(page, "warning") == ["No backend is chosen; choose at least one."]
    assert sound(page).get("plotly_chart")


def test_an_unfinished_sweep_shows_what_it_has(folder):
    sweeps.write(folder, "half", sweeps.BATCHES, leave_out=(2, 3, 6, 7, 9, 10, 11, 12, 13, 14, 15))
    page = sound(visit(sweep="half"))
    assert any("5 of 16 runs" in text for text in said(page, "markdown"))
    assert len(page.dataframe[-1].value) == 5


def test_a_sweep_without_any_point_has_a_title_and_says_so(folder):
    sweeps.write(folder, "none", sweeps.BATCHES, leave_out=range(16))
    page = sound(visit(sweep="none"))
    assert "No point of this sweep is there yet." in said(page, "info")


def test_a_damaged_point_is_left_out_and_named(folder):
    sweeps.write(folder, "batches", sweeps.BATCHES)
    (folder / "batches" / "0005.run.zip").write_bytes(b"no zip")
    page = sound(visit(sweep="batches"))
    assert len(page.dataframe[-1].value) == 15
    assert any("0005.run.zip" in text for text in said(page, "markdown"))


def test_a_busy_host_is_told_beside_every_step_time(folder):
    def warned(view):
        return any("shared the CPU" in text for text in said(sound(visit(sweep="one", view=view)), "warning"))

    sweeps.write(folder, "one", sweeps.BATCHES)
    assert not warned("step")
    sweeps.write(folder, "beside", sweeps.BATCHES)  # measured over the same seconds
    assert [warned(view) for view in ("step", "pays", "kernels")] == [True, True, False]


@pytest.mark.parametrize("view", SWEEP_VIEWS)
def test_a_strangers_words_are_text(folder, view):
    sweeps.write(folder, "strange", sweeps.BATCHES, strange=HOSTILE)
    page = sound(visit(sweep="strange", view=view))
    assert any("evil" in text for text in raw(page))
    live = [text for text in raw(page) if ALIVE.search(_without_code(text))]
    # Our own bold words and headings are alive; none of the stranger's may be.
    assert [text for text in live if "evil" in text or ":red[" in text] == []
    for chart in page.get("plotly_chart"):
        assert "<b>h</b>" not in chart.proto.spec and "\\u003cb\\u003eh" not in chart.proto.spec


def _without_code(text):
    return re.sub(r"(`+) ?.*? ?\1", "", text)


def test_another_kind_brings_a_sweep_of_that_kind(folder):
    sweeps.write(folder, "batches", sweeps.BATCHES)
    sweeps.write(folder, "map", sweeps.MAP)
    page = visit(sweep="batches")
    page.segmented_control(key="shape:kind").set_value("map").run()
    assert sound(page).header[0].value.endswith("who wins over batch × intermediate")
    page.segmented_control(key="shape:kind").set_value("traffic").run()
    assert any("Not run yet" in text for text in said(sound(page), "warning"))
    page.segmented_control(key="shape:kind").set_value("sweep").run()
    assert sound(page).header[0].value == "Gated MLP (GEGLU): batch changes"


def test_one_pick_at_hand_fills_everything(folder):
    sweeps.write(folder, "batches", sweeps.BATCHES)
    sweeps.write(folder, "other", {**sweeps.BATCHES, "values": "1,2,3", "backends": "eager,compile"})
    page = visit(sweep="batches")
    page.selectbox(key="shape:at hand").set_value("other").run()
    assert (picked(sound(page), "values"), picked(page, "backends")) == ("1, 2, 3", ["eager", "compile"])
    assert page.query_params["sweep"] in ("other", ["other"])


def test_the_axis_and_its_ready_made_lists():
    page = visit(layer="geglu_mlp")
    page.selectbox(key="shape:axis").set_value("intermediate").run()
    assert picked(sound(page), "values") == "1024, 2048, 4096, 8192, 16384"
    page.selectbox(key="shape:list axis").set_value("Primes").run()
    assert picked(sound(page), "values") == "1021, 2039, 3067, 4093, 8191"
    assert page.query_params["values"] in ("1021,2039,3067,4093,8191", ["1021,2039,3067,4093,8191"])
    assert picked(page, "batch") == "64"


def test_a_sweep_goes_out_as_one_zip_and_comes_in_again(folder, home):
    sweeps.write(folder, "batches", sweeps.BATCHES)
    data = session.sweeps().export(session.sweeps().get("batches"))
    session.sweeps().delete("batches")
    page = visit()
    page.file_uploader(key="shapes:upload").upload("batches.sweep.zip", data, "application/zip").run()
    assert any("Here: Gated MLP (GEGLU), batch sweep, 4 points" in text for text in said(sound(page), "success"))
    page = sound(visit(sweep="batches"))
    assert any("Uploaded, measured on NVIDIA H200" in text for text in said(page, "markdown"))
    page.file_uploader(key="shapes:upload").upload("x.zip", b"PK no", "application/zip").run()
    assert any("Not taken in." in text for text in said(sound(page), "warning"))


def test_deleting_asks_first(folder):
    sweeps.write(folder, "batches", sweeps.BATCHES)
    page = visit(sweep="batches")
    page.button(key="shapes:delete").click().run()
    assert session.sweeps().get("batches") is not None
    page.button(key="shapes:delete").click()  # AppTest runs whole pages alone, and the dialog is a fragment of its own
    page.button(key="shapes:really").click().run()
    assert session.sweeps().get("batches") is None
    assert any("There are no sweeps here yet" in text for text in said(sound(page), "info"))


def test_two_hundred_points_are_all_there(folder):
    values = ",".join(str(1 + at) for at in range(66))
    sweeps.write(
        folder, "many", {"layer": "geglu_mlp", "axis": "batch", "values": values, "backends": "eager,compile,liger"}
    )
    page = sound(visit(sweep="many"))
    assert len(page.dataframe[-1].value) == 198


def test_a_link_that_names_an_axis_alone_takes_one_along_it(folder):
    sweeps.write(folder, "batches", sweeps.BATCHES)
    sweeps.write(folder, "widths", {**sweeps.BATCHES, "axis": "intermediate", "values": "2048,11008"})
    assert sound(visit(layer="geglu_mlp", axis="intermediate")).query_params["sweep"] == "widths"
    page = sound(visit(layer="geglu_mlp", axis="hidden"))  # none is at hand: it can be run
    assert "sweep" not in page.query_params and picked(page, "axis") == "hidden"


def test_a_link_that_names_a_kind_alone_takes_one_at_hand(folder):
    sweeps.write(folder, "batches", sweeps.BATCHES)
    sweeps.write(folder, "cells", sweeps.MAP)
    page = sound(visit(kind="map"))
    assert page.query_params["sweep"] in ("cells", ["cells"]) and not page.warning
    assert any("Not run yet" in text for text in said(sound(visit(kind="traffic")), "warning"))


class TestWithTheShippedRecordings:
    """What the recordings of the article's MLP say on this page."""

    @pytest.fixture(autouse=True)
    def shipped(self, home, monkeypatch):
        monkeypatch.setattr(session, "sweeps", lambda: Sweeps(home))

    def test_the_first_view_tells_that_the_same_code_gets_two_kernels(self):
        page = sound(visit())
        assert page.header[0].value == "Gated MLP (GEGLU): batch changes"
        luck = next(text for text in said(page) if "does not always make the same kernel" in text)
        assert "at batch 64 the same code" in luck and "7 cold compiles" in luck and "fresh process 55" in luck

    def test_they_were_measured_alone(self):
        assert not any("shared the CPU" in text for view in ("step", "pays") for text in said(visit(view=view)))

    def test_the_compiles_of_that_run_stand_side_by_side(self):
        page = sound(visit(view="lottery"))
        assert "The same code, compiled again and again" in [one.value for one in page.subheader]
        assert len(page.get("plotly_chart")) == 1
