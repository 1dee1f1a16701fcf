"""The walls between the rooms: who may import what. Each reason stands in the README."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
TORCH = {"torch", "triton", "liger_kernel"}
LAYERS_UP = {
    "engine",
    "ui",
    "charts",
    "store",
    "analysis",
    "bench",
    "workload",
    "layers",
    "backends",
    "roles",
    "estimate",
}


def imports_of(path):
    """(module, whether it is imported at the top level) of every import in a file."""
    tree = ast.parse(path.read_text())
    top = set(map(id, tree.body))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, id(node) in top) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield (node.module or "", id(node) in top)


def files(*folders):
    return [path for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]


def name_of(path):
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", [ROOT / "app.py", *files("pages", "core")], ids=name_of)
def test_torch_stays_in_its_rooms(path):
    room = path.relative_to(ROOT).parts[1] if path.parent != ROOT else ""
    for module, at_top in imports_of(path):
        if module.split(".")[0] in TORCH:
            assert room in ("bench", "layers", "backends"), f"{module} is imported in {name_of(path)}"
            assert room == "bench" or not at_top, "layers and backends import torch inside build() and apply() alone"


@pytest.mark.parametrize("path", files("core"), ids=name_of)
def test_streamlit_stays_in_ui(path):
    allowed = path.is_relative_to(ROOT / "core" / "ui")
    assert allowed or not any(module.split(".")[0] == "streamlit" for module, _ in imports_of(path))


@pytest.mark.parametrize("path", files("core/trace"), ids=name_of)
def test_trace_knows_none_of_the_rooms_above(path):
    assert not any(module.startswith("core.") and module.split(".")[1] in LAYERS_UP for module, _ in imports_of(path))


@pytest.mark.parametrize("path", files("core/analysis"), ids=name_of)
def test_analysis_knows_trace_alone(path):
    rooms = {module.split(".")[1] for module, _ in imports_of(path) if module.startswith("core.")}
    assert rooms <= {"trace", "analysis", "roles"}


@pytest.mark.parametrize("path", files("core/charts"), ids=name_of)
def test_charts_know_analysis_alone(path):
    rooms = {module.split(".")[1] for module, _ in imports_of(path) if module.startswith("core.")}
    assert rooms <= {"analysis", "charts", "roles"}


@pytest.mark.parametrize("path", [ROOT / "app.py", *files("pages")], ids=name_of)
def test_pages_hold_no_table_arithmetic(path):
    assert not {"numpy", "pandas", "pyarrow", "plotly"} & {module.split(".")[0] for module, _ in imports_of(path)}


@pytest.mark.parametrize("path", [ROOT / "app.py", *files("pages", "core", "benchmarks", "tests")], ids=name_of)
def test_a_module_fits_on_a_few_screens_and_says_what_it_is_for(path):
    text = path.read_text()
    assert len(text.splitlines()) <= 400
    assert ast.get_docstring(ast.parse(text)), f"{name_of(path)} has no first line that says what it is for"


PRIVATE = ("torch._", "torch.compiler._")


@pytest.mark.parametrize("path", files("core"), ids=name_of)
def test_private_pytorch_is_touched_in_one_module(path):
    if path.name == "torch_internals.py":
        return
    assert not any(module.startswith(PRIVATE) for module, _ in imports_of(path))
    assert not re.search(r"\btorch\._[a-z]", path.read_text())
