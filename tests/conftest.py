"""What all tests share: a home of their own, quick compiles, and the `gpu` mark."""

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
# Inductor otherwise compiles a probe of the CPU's vector instructions first, which takes ten seconds.
os.environ.setdefault("TORCHINDUCTOR_VEC_ISA_OK", "1")


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    """No test touches the store of the person who runs it."""
    monkeypatch.setenv("FUSIONSCOPE_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def pytest_collection_modifyitems(items):
    """Tests marked gpu are skipped where torch has no GPU."""
    wanted = [item for item in items if "gpu" in item.keywords]
    if wanted and not _has_gpu():
        for item in wanted:
            item.add_marker(pytest.mark.skip(reason="needs an NVIDIA GPU that torch can use"))


def _has_gpu():
    # Asked of the driver's device file: importing torch takes seconds, and most test runs have no GPU.
    return Path("/dev/nvidia0").exists()
