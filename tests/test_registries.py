"""The registries: a new layer or backend is one file and one name, and shows up everywhere by itself."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from core.backends import BACKENDS
from core.layers import LAYERS
from core.shipped import shipped

ROOT = Path(__file__).resolve().parents[1]
LAYER = '''"""x * x."""
from core.layers.spec import Cost, Layer, Preset, Size


def build(sizes, flags, dtype, device):
    import torch

    class Square(torch.nn.Module):
        def forward(self, x):
            return x * x

    return Square(), (torch.randn(sizes["width"], dtype=dtype, device=device),)


def cost(sizes, flags, element_bytes):
    return Cost(0, 1, element_bytes, 0, element_bytes, 0, 0, sizes["width"])


LAYER = Layer("square", "Square", "x times x.", "square", (Size("width", "Width", 16, "Elements."),), build, cost, (),
              presets=(Preset("99_square", "99_square: a dummy", backend="twice"),))
'''
BACKEND = '''"""Eager, twice."""
from core.backends.spec import Backend


def apply(module):
    return lambda *inputs: module(*inputs) + module(*inputs)


BACKEND = Backend("twice", "Twice", "Each call runs the layer twice.", apply)
'''


def test_names_are_unique_and_fit_into_links():
    for registry in (LAYERS, BACKENDS):
        names = [one.name for one in registry]
        assert len(set(names)) == len(names)
        assert all(name.isidentifier() for name in names)
    presets = [preset.name for layer in LAYERS for preset in layer.presets]
    assert len(set(presets)) == len(presets)


@pytest.fixture
def with_dummies(tmp_path):
    """A copy of the code with a layer and a backend more: a file and a name each."""
    for folder in ("core", "pages"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "app.py", tmp_path)
    for room, last, name, text in (("layers", "geglu_mlp", "square", LAYER), ("backends", "liger", "twice", BACKEND)):
        (tmp_path / "core" / room / f"{name}.py").write_text(text)
        registry = tmp_path / "core" / room / "__init__.py"
        registry.write_text(registry.read_text().replace(f'    "{last}",\n', f'    "{last}",\n    "{name}",\n'))
    return tmp_path


def test_a_dummy_layer_on_a_dummy_backend_runs(with_dummies, home):
    done = subprocess.run(
        [sys.executable, "-m", "core", "record", "--preset", "99_square", "dtype=fp32", "passes=fwd_bwd"],
        cwd=with_dummies,
        env=os.environ | {"FUSIONSCOPE_HOME": str(home)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "Square, width 16, fp32, forward + backward, Twice" in done.stdout


ON_PAGES = """
from streamlit.testing.v1 import AppTest
page = AppTest.from_file("app.py", default_timeout=60).switch_page("pages/1_Explore.py")
page.query_params["layer"], page.query_params["backend"] = "square", "eager,twice"
page.run()
assert not page.exception
assert page.selectbox(key="pick:layer").value == "square"
assert "Twice" in page.multiselect(key="pick:backends").options
assert page.multiselect(key="pick:backends").value == ["eager", "twice"]
assert "99_square: a dummy (not recorded)" in page.selectbox(key="pick:preset").options
assert page.text_input(key="pick:width").value == "16"
"""


def test_a_dummy_layer_backend_and_preset_are_in_the_pickers_by_themselves(with_dummies, home):
    done = subprocess.run(
        [sys.executable, "-c", ON_PAGES],
        cwd=with_dummies,
        env=os.environ | {"FUSIONSCOPE_HOME": str(home)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-3000:]


def test_every_layer_is_shipped_on_every_backend_that_applies():
    named = {(one.workload.layer, one.workload.backend) for one in shipped()}
    for layer in LAYERS:
        for backend in BACKENDS:
            applies = backend.twin is None or backend.twin in layer.twins
            assert ((layer.name, backend.name) in named) == applies
