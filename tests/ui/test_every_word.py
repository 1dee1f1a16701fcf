"""Every heading, number, column and picker of every page has its sentence on hover."""

import json
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from tests.ui.test_pages import viewing_only  # noqa: F401  # the fixture belongs to every page test

ROOT = Path(__file__).resolve().parents[2]
VIEWS = (
    ("app.py", {}),
    ("pages/1_Explore.py", {}),
    ("pages/1_Explore.py", {"layer": "geglu_mlp", "backend": "compile", "passes": "fwd_bwd"}),
    ("pages/1_Explore.py", {"layer": "rms_norm", "backend": "eager,reduce_overhead,liger", "focus": "reduce_overhead"}),
    ("pages/1_Explore.py", {"layer": "matmul_add", "rows": "4096", "inner": "4096", "columns": "4096"}),
    ("pages/2_Shapes.py", {}),
    ("pages/2_Shapes.py", {"kind": "map", "layer": "geglu_mlp"}),
    ("pages/2_Shapes.py", {"kind": "traffic", "layer": "rms_norm"}),
    ("pages/3_Runs.py", {}),
    ("pages/4_Doctor.py", {}),
)


@pytest.fixture(scope="module")
def views():
    """Each page as a visitor finds it; made once for all tests."""
    found = {}
    for path, query in VIEWS:
        page = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
        page = page if path == "app.py" else page.switch_page(path)
        for name, value in query.items():
            page.query_params[name] = value
        found[path, tuple(query.items())] = page.run()
    return found


@pytest.fixture(params=[(path, tuple(query.items())) for path, query in VIEWS], ids=str)
def view(request, views):
    page = views[request.param]
    assert not page.exception
    return page


def without_help(elements):
    return [getattr(one, "label", None) or one.value for one in elements if not one.proto.help]


def test_headings_have_their_sentence(view):
    assert without_help(view.subheader) == []


def test_numbers_have_their_sentence(view):
    assert without_help(view.metric) == []


def test_columns_have_their_sentence(view):
    bare = []
    for table in view.dataframe:
        columns = json.loads(table.proto.columns or "{}")
        for name in table.value.columns:
            config = columns.get(name)
            if not config or not config.get("help"):
                bare.append(name)
    assert bare == []


def test_pickers_have_their_sentence(view):
    kinds = ("selectbox", "multiselect", "text_input", "checkbox", "text_area", "segmented_control", "toggle")
    assert [label for kind in kinds for label in without_help(getattr(view, kind))] == []


def test_what_is_unknown_says_why(view):
    for metric in view.metric:
        if metric.value == "unknown":
            assert metric.delta and metric.delta != "unknown", metric.label
