"""The Runs page: filters and their link, what is done with ticked runs, uploads, and what an empty store says."""

import csv
import io
import re
import zipfile
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from core.store import runfile
from core.store.manifest import Device, Failure, NumericError
from core.store.store import RECORDINGS, Store
from core.ui import runs, runtable, session
from core.ui.runtable import Filters
from tests.runs import CPU, manifest, run_file

ROOT = Path(__file__).resolve().parents[2]
SHIPPED = len(list(RECORDINGS.glob("*.run.zip")))
HOSTILE = "![x](http://127.0.0.1:9/x.png) [press](http://evil.example) $x^2$ `b` :red[r] <b>h</b> **s**"
#: Markdown that would do something: not escaped by a backslash.
ALIVE = re.compile(r"(?<!\\)(?:!\[|\]\(http|\$x|:red\[|<b>|\*\*s)")


@pytest.fixture(autouse=True)
def viewing_only(home, monkeypatch):
    """A small install with a store of its own."""
    monkeypatch.setattr(session, "can_run", lambda: False)
    shared = session.store
    shared.clear()
    yield
    shared.clear()


@pytest.fixture
def store(home):
    """The store that the page shows, filled by another server."""
    return Store(home)


def visit(**link):
    page = AppTest.from_file(str(ROOT / "app.py"), default_timeout=30).switch_page("pages/3_Runs.py")
    for name, value in link.items():
        page.query_params[name] = value
    return page.run()


def said(page, *kinds):
    """Every sentence as it reads, with nothing escaped."""
    kinds = kinds or ("header", "markdown", "caption", "warning", "success", "error", "info")
    raw = [element.value for kind in kinds for element in getattr(page, kind)]
    return [re.sub(r"\\(.)", r"\1", text).replace("\u2060", "") for text in raw]


def listed(page):
    """The ids of the runs listed, in order."""
    return list(page.dataframe[0].value["Run"]) if page.dataframe else []


def tick(page, *run_ids):
    """Ticks the rows of these runs, as the browser does."""
    rows = [listed(page).index(run_id) for run_id in run_ids]
    key = "runs:list:" + page.dataframe[0].proto.id.rpartition("runs:list:")[2]
    page.session_state[key] = {"selection": {"rows": rows, "columns": [], "cells": []}}
    return page.run()


def link_of(page):
    return {name: page.query_params.get(name) for name in page.query_params}


def test_every_run_is_listed_newest_first_with_what_is_unknown_left_open(store):
    store.add(run_file("mine", created="2031-01-01T00:00:00+00:00", device=CPU))
    store.add(run_file("failed", created="2030-01-01T00:00:00+00:00", status="failed", step_us=None))
    page = visit()
    assert not page.exception
    assert listed(page)[:2] == ["mine", "failed"]
    assert f"**{SHIPPED + 2} of {SHIPPED + 2} runs**, newest first" in said(page)
    first, second = page.dataframe[0].value.iloc[0], page.dataframe[0].value.iloc[1]
    assert (first["Layer"], first["Sizes"], first["Backend"]) == ("nn.Linear", "1,024 × 32 × 64, with bias", "Eager")
    assert (first["Step, µs"], first["Step n"], first["Device"], first["Origin"]) == (11.0, 3, "CPU (Some CPU)", "live")
    assert (first["dtype"], first["Passes"], first["Status"], first["torch"]) == ("bf16", "Forward", "ok", "2.11.0")
    assert first["Taken, UTC"] == "2031-01-01 00:00"
    assert second[["Step, µs", "Step n", "Replay, µs", "Peak memory, MB", "Numeric error"]].isna().all()


def test_every_column_and_filter_has_its_sentence():
    assert all(len(thing.help) > 10 for thing in (*runtable.COLUMNS, *runtable.FACETS))
    page = visit()
    assert all(box.help for box in (*page.multiselect, *page.text_input))


def test_filters_narrow_the_list_and_stand_in_the_link():
    page = visit()
    page.multiselect(key="runs:filter:layer").set_value(["linear"]).run()
    page.multiselect(key="runs:filter:backend").set_value(["eager"]).run()
    assert set(page.dataframe[0].value["Layer"]) == {"nn.Linear"}
    assert link_of(page) == {"layer": "linear", "backend": "eager"}
    few = listed(page)
    page.text_input(key="runs:filter:q").set_value("FORWARD backward").run()
    assert 0 < len(listed(page)) < len(few)
    assert set(page.dataframe[0].value["Passes"]) == {"Forward + backward"}
    again = visit(**link_of(page))
    assert listed(again) == listed(page)
    assert again.multiselect(key="runs:filter:backend").value == ["eager"]
    again.button(key="runs:clear").click().run()
    assert len(listed(again)) == SHIPPED
    assert link_of(again) == {}


def test_a_search_reads_everything_shown(store):
    store.add(run_file("mine", status="failed", step_us=None, failure=Failure("k", "The driver went away.")))
    store.add(run_file("wide", fields={"layer": "linear", "batch": 4321}, peak_memory_bytes=777_700_000,
                       errors=(NumericError("output", None, None, finite=False),)))  # fmt: skip
    found = runtable.table(store.snapshot())
    for text, expected in (
        ("driver went away", ["mine"]), ("4,321", ["wide"]), ("777.7", ["wide"]), ("inf", ["wide"]), ("mine", ["mine"]),
        ("unknown failed linear", ["mine"]), ("nothing like it", []),
    ):  # fmt: skip
        rows = runtable.matching(found, Filters(text))
        assert [found.entries[row].head.id for row in rows] == expected, text


@pytest.mark.parametrize(
    ("link", "words"),
    [
        ({"layer": "transformer"}, "The link asks for layer 'transformer', which no run here has; it is left out."),
        ({"status": ["ok", "odd"]}, "The link asks for status 'odd'"),
        ({"colour": "blue"}, "The link asks for 'colour'"),
        ({"device": HOSTILE}, "The link asks for device"),
        ({"layer": ["a", "b"], "backend": ["c", "d"]}, "layer 'a', layer 'b', backend 'c' and 1 more"),
    ],
)
def test_what_is_wrong_with_a_link_is_left_out_and_said_once(link, words):
    page = visit(**link)
    assert not page.exception
    (sentence,) = said(page, "warning")
    assert words in sentence
    good = [entry for entry in session.store().entries() if "status" not in link or entry.head.state == "ok"]
    assert len(listed(page)) == len(good)
    assert not any(ALIVE.search(element.value) for element in page.warning)
    assert set(link_of(page)) <= {"status"}
    page.multiselect(key="runs:filter:origin").set_value(["recorded"]).run()
    page.button(key="runs:clear").click().run()
    assert not page.warning


def test_nothing_matches_and_the_way_on():
    page = visit(q="no such thing")
    assert "No run matches these filters." in said(page, "info")
    assert f"**0 of {SHIPPED} runs**, newest first" in said(page)
    page.button(key="runs:clear here").click().run()
    assert len(listed(page)) == SHIPPED


def test_an_empty_store_says_what_to_do(monkeypatch, tmp_path):
    monkeypatch.setattr(session, "store", lambda: Store(tmp_path / "none", tmp_path / "neither"))
    page = visit()
    assert not page.exception
    assert any(text.startswith("There are no runs here yet") for text in said(page, "info"))
    page.file_uploader(key="runs:upload").upload("a.run.zip", run_file("a")).run()
    assert listed(page) == ["a"]


def test_files_that_are_no_runs_are_named_with_the_reason(store):
    store.add(run_file("mine"))
    (store.home / "runs" / "bad.run.zip").write_bytes(b"junk")
    page = visit()
    assert any("`runs/bad.run.zip`: The file is not a run" in text for text in said(page, "markdown"))


def test_nothing_can_be_done_before_a_row_is_ticked(store):
    store.add(run_file("mine"))
    page = visit()
    assert [page.button(key=f"runs:{name}").disabled for name in ("keep", "delete")] == [True, True]
    page = tick(page, "mine")
    assert [page.button(key=f"runs:{name}").disabled for name in ("keep", "delete")] == [False, False]
    assert any(
        "Live on NVIDIA H200: step 11.00 µs (median; 10.00–12.00 µs, n 3; device events)" in t for t in said(page)
    )


def test_keep_and_release(store):
    store.add(run_file("mine"))
    page = tick(visit(), "mine")
    page.button(key="runs:keep").click().run()
    assert store.get("mine").kept
    assert "1 run kept." in said(page, "toast")
    assert page.dataframe[0].value.set_index("Run").loc["mine", "Kept"] == "kept"
    assert page.button(key="runs:keep").label == "Release"
    page.button(key="runs:keep").click().run()
    assert not store.get("mine").kept
    assert "1 run released." in said(page, "toast")


def test_recordings_alone_can_neither_be_kept_nor_deleted():
    page = visit()
    page = tick(page, listed(page)[0])
    assert page.button(key="runs:keep").disabled
    assert page.button(key="runs:delete").disabled


def test_deletion_asks_first_and_says_what_stays(store):
    store.add(run_file("mine"))
    store.add(run_file("kept"))
    store.keep("kept", True)
    shipped = next(entry.head.id for entry in store.entries() if entry.recorded)
    page = tick(visit(), "mine", "kept", shipped)
    page.button(key="runs:delete").click().run()
    assert store.get("mine") is not None
    asked = " ".join(said(page))
    assert "**1 run** will be deleted from this machine" in asked
    assert "1 run will be left alone. Kept runs stay until they are released." in asked
    assert "1 run will be left alone. Shipped recordings stay." in asked
    page.button(key="runs:delete").click()  # AppTest runs whole pages alone, and the dialog is a fragment of its own
    page.button(key="runs:really").click().run()
    assert "1 run deleted." in said(page, "toast")
    assert store.get("mine") is None
    assert set(listed(page)) == {entry.head.id for entry in store.entries()}
    assert "kept" in listed(page)


def test_a_tick_never_means_another_run(store):
    store.add(run_file("old", created="2030-01-01T00:00:00+00:00"))
    page = tick(visit(), "old")
    assert not page.button(key="runs:delete").disabled
    store.add(run_file("new", created="2031-01-01T00:00:00+00:00"))
    page.run()
    assert listed(page)[0] == "new"
    assert page.button(key="runs:delete").disabled


def test_an_upload_is_taken_in_once_and_each_file_has_its_sentence(store):
    page = visit()
    page.file_uploader(key="runs:upload").set_value([
        ("good.run.zip", run_file("theirs"), "application/zip"), ("again.run.zip", run_file("theirs"), "application/zip"),
        ("bad.run.zip", b"junk", "application/zip"),
    ]).run()  # fmt: skip
    assert not page.exception
    sentences = said(page, "success", "warning")
    assert sentences[0].startswith("`good.run.zip`: Added: nn.Linear")
    assert sentences[0].endswith("20 steps. Uploaded, measured on NVIDIA H200.")
    assert sentences[1].startswith("`again.run.zip`: Already here, and left as it is")
    assert sentences[2].startswith("`bad.run.zip`: Not taken in. The file is not a run")
    assert page.dataframe[0].value.set_index("Run").loc["theirs", "Origin"] == "uploaded"
    store.delete(["theirs"])
    page.run()
    assert "theirs" not in listed(page), "a rerun uploads nothing again"
    assert said(page, "success", "warning") == sentences


def test_what_a_strangers_run_says_is_shown_as_it_is(store):
    device = Device(kind="gpu", name=HOSTILE, driver=HOSTILE)
    store.add(run_file(HOSTILE, device=device, versions={"torch": HOSTILE}, created=HOSTILE, status="failed",
                       failure=Failure("k", HOSTILE)))  # fmt: skip
    page = tick(visit(), HOSTILE)
    assert not page.exception
    texts = [element.value for kind in ("markdown", "caption", "warning") for element in getattr(page, kind)]
    assert not [text for text in texts if ALIVE.search(text)]
    page.file_uploader(key="runs:upload").upload(f"{HOSTILE}.zip", run_file("theirs", device=device)).run()
    outside_code = [re.sub(r"(`+).*?\1", "", element.value) for element in (*page.success, *page.warning)]
    assert outside_code
    assert not [text for text in outside_code if ALIVE.search(text)]


def test_one_run_is_downloaded_as_its_file_and_several_as_a_zip_of_them(store):
    store.add(run_file("mine"))
    store.upload(run_file("theirs"))
    mine, theirs = store.get("mine"), store.get("theirs")
    assert runs.run_files((mine,)) == mine.path.read_bytes()
    with zipfile.ZipFile(io.BytesIO(runs.run_files((mine, theirs)))) as archive:
        assert archive.namelist() == ["live/mine.run.zip", "uploaded/theirs.run.zip"]
        assert runfile.read_manifest(archive.read("live/mine.run.zip")) == manifest("mine")


def test_the_csv_has_a_row_a_run_with_id_device_and_versions(store):
    store.add(run_file("=cmd()", versions={"torch": "2.11.0", "triton": None, "python": "3.12.3"}))
    store.add(run_file("mine", status="failed", step_us=None, device=CPU))
    rows = list(csv.DictReader(io.StringIO(runtable.as_csv((store.get("=cmd()"), store.get("mine"))).decode())))
    assert [row["run"] for row in rows] == ["'=cmd()", "mine"]
    assert (rows[0]["device"], rows[0]["driver"], rows[0]["versions"]) == (
        "NVIDIA H200",
        "580.1",
        "torch 2.11.0; python 3.12.3",
    )
    assert [rows[0][f"step_{name}"] for name in ("median_us", "min_us", "max_us", "n")] == ["11.0", "10.0", "12.0", "3"]
    assert (rows[1]["step_median_us"], rows[1]["status"], rows[1]["origin"]) == ("", "failed", "live")
