"""Links to the Shapes page: never half a list, never another sweep than the one named, and no pick lost on the way."""

import re
from pathlib import Path

import pytest

from core.sweep import make_sweep
from core.ui import shapes_link
from core.workload import make
from tests import sweeps
from tests.ui.test_shapes_page import PAGE, viewing_only  # noqa: F401  # the fixture belongs to every page test
from tests.ui.test_shapes_page import visit as visited

ROOT = Path(__file__).resolve().parents[2]
ELSEWHERE = "pages/3_Runs.py"
#: Fifteen hundred characters: more than this page writes into a link, and a list of sizes all the same.
LONG = ",".join(str(1_000_000 + at) for at in range(190))


@pytest.fixture(autouse=True)
def two_sweeps(viewing_only, home):  # noqa: F811  # pytest names a fixture by its argument
    """The store holds two sweeps of one layer."""
    sweeps.write(home / "sweeps", "batches", sweeps.BATCHES)
    sweeps.write(home / "sweeps", "newer", {**sweeps.BATCHES, "values": "1,2"}, created="2026-06-01T00:00:00+00:00")


def visit(**link):
    return sound(visited(**link))


@pytest.mark.parametrize(
    ("changes", "query"),
    [
        ({"batch": 8}, {"sweep": "batches"}),
        ({"batch": 2}, {"sweep": "newer"}),
        ({"batch": 7}, {"layer": "geglu_mlp", "batch": "7", "hidden": "768", "backends": "eager,liger"}),
    ],
)
def test_a_workload_leads_to_a_sweep_of_its_sizes(changes, query):
    found = shapes_link.to_sizes(make({"layer": "geglu_mlp", "backend": "eager", **changes}), ["eager", "liger"])
    assert query.items() <= found.items() and ("sweep" in found) == ("sweep" in query)
    page = visit(**found)
    assert page.session_state["shape:layer"] == "geglu_mlp"
    assert not any(one.value.startswith("The link") for one in page.warning)


@pytest.mark.parametrize(
    "fields", [{"layer": "geglu_mlp"}, {"axis": "batch"}, {"values": "4,8,16,32"}, {"kind": "sweep", "seq": "128"}]
)
def test_an_id_with_some_of_its_fields_is_that_sweep(fields):
    page = visit(sweep="batches", **fields)
    assert page.query_params["sweep"] == "batches" and not page.warning


def test_an_id_with_another_list_means_the_rest_of_that_sweep(home):
    fields = {"layer": "swiglu_mlp", "axis": "batch", "values": "4,8", "hidden": "96", "backends": "compile"}
    sweeps.write(home / "sweeps", "swiglu", fields)
    page = visit(sweep="swiglu", values="9,9")
    state = page.session_state
    assert [state[f"shape:{name}"] for name in ("layer", "values", "hidden")] == ["swiglu_mlp", "9, 9", "96"]
    assert state["shape:backends"] == ["compile"]
    assert any("of other sizes than the link names" in one.value for one in page.warning)
    page = visit(sweep="swiglu", layer="softmax", values="9,9")
    assert page.session_state["shape:layer"] == "softmax"


def test_a_sweep_that_is_gone_is_told_with_what_is_shown_instead():
    page = visit(sweep="gone", layer="geglu_mlp", axis="batch")
    assert "one that is here is shown" in page.warning[0].value.replace("\\", "")
    page = visit(sweep="gone", layer="geglu_mlp", axis="batch", values="3,5")
    assert "the sizes that the link names are shown" in page.warning[0].value.replace("\\", "")


def sound(page):
    assert not page.exception and not page.error
    return page


def warned(page):
    return [re.sub(r"\\(.)", r"\1", one.value).replace("\u2060", "") for one in page.warning]


def values(page):
    return page.session_state["shape:values"].replace(" ", "")


def there_and_back(page):
    """By the menu, which carries no link along."""
    page = page.switch_page(ELSEWHERE).run()
    for name in list(page.query_params):
        del page.query_params[name]
    return sound(page.switch_page(PAGE).run())


def test_a_long_list_in_a_link_is_taken_whole():
    page = visit(layer="geglu_mlp", axis="batch", values=LONG, backends="eager")
    assert values(page) == LONG
    assert [text for text in warned(page) if "190 points" in text and "Not run yet" in text] == warned(page)


def test_a_link_that_is_too_long_says_so_and_gives_nothing_of_the_list():
    page = visit(layer="geglu_mlp", axis="batch", values=LONG * 6, backends="eager,liger")
    told = [text for text in warned(page) if "is left out" in text]
    assert len(told) == 1 and f"The link's values has {len(LONG) * 6:,} characters" in told[0]
    assert "1000000" not in values(page)
    assert page.session_state["shape:backends"] == ["eager", "liger"]


def test_the_sweep_that_a_link_names_stays_where_its_list_is_too_long():
    page = visit(sweep="batches", layer="geglu_mlp", axis="batch", values=LONG * 6)
    assert values(page) == "4,8,16,32" and len(warned(page)) == 1
    assert page.query_params["sweep"] in ("batches", ["batches"])


def test_names_that_no_sweep_has_are_left_out_and_the_sweep_stays():
    page = visit(sweep="batches", utm_source="mail", fbclid="x" * 9_000)
    assert values(page) == "4,8,16,32"
    assert warned(page) == ["The link names 'utm_source', which no sweep has; it is left out."]
    assert "utm_source" not in page.query_params
    assert page.query_params["sweep"] in ("batches", ["batches"])
    assert warned(sound(page.run())) == warned(page)


def test_a_name_of_another_layer_is_left_out_too():
    page = visit(layer="geglu_mlp", axis="batch", values="4,8,16,32", in_features="16")
    assert any("'in_features', which a sweep of this layer does not have" in text for text in warned(page))


def test_a_pick_that_no_link_has_room_for_is_kept_for_the_visit():
    page = visit()
    page.text_input(key="shape:values").set_value(LONG).run()
    assert "values" not in page.query_params
    assert values(there_and_back(sound(page))) == LONG


def test_traffic_that_no_link_has_room_for_is_kept_for_the_visit():
    page = visit(kind="traffic", layer="geglu_mlp", rows="1,2,3;4,5,6")
    rows = [f"{at + 1}, 128, {at + 10}" for at in range(190)]
    page.text_area(key="shape:traffic rows").set_value("\n".join(rows)).run()
    page = there_and_back(sound(page))
    assert page.session_state["shape:kind"] == "traffic"
    assert page.session_state["shape:traffic rows"].splitlines() == rows


def test_a_short_pick_and_a_sweep_come_back_as_before():
    page = visit()
    page.text_input(key="shape:values").set_value("3, 5, 9").run()
    assert values(there_and_back(sound(page))) == "3,5,9"
    page = there_and_back(visit(sweep="batches"))
    assert page.query_params["sweep"] in ("batches", ["batches"]) and not warned(page)


def test_a_link_to_a_sweep_holds_its_fields_or_its_id_alone():
    short = make_sweep(sweeps.BATCHES)
    assert shapes_link.to_sweep(short, "one")["values"] == "4,8,16,32"
    long = make_sweep({**sweeps.BATCHES, "values": LONG})
    assert shapes_link.to_sweep(long, "one") == {"sweep": "one"}
