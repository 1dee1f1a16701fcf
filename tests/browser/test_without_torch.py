"""The small install: the app starts and serves recordings where torch, triton, liger_kernel and dask do not exist."""

import site
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT, Server

pytestmark = [pytest.mark.browser, pytest.mark.timeout(240)]
MISSING = ("torch", "triton", "liger", "distributed", "dask", "cryptography", "pynvml", "nvidia", "sympy")


@pytest.fixture(scope="module")
def small_site(tmp_path_factory):
    """A folder with this environment's packages less those that the small install lacks."""
    folder = tmp_path_factory.mktemp("small") / "site-packages"  # the name tells Streamlit that it is installed
    folder.mkdir()
    for packages in site.getsitepackages():
        for entry in Path(packages).iterdir():
            if not entry.name.startswith(MISSING) and entry.suffix != ".pth":
                (folder / entry.name).symlink_to(entry)
    return folder


def test_the_packages_are_really_missing(small_site):
    script = "import importlib.util as u; print([n for n in ('torch','triton','liger_kernel','distributed') if u.find_spec(n)])"
    done = subprocess.run(
        [sys.executable, "-S", "-c", script], env={"PYTHONPATH": str(small_site)}, capture_output=True, text=True
    )
    assert done.stdout.strip() == "[]", done.stderr


def test_recordings_are_served(small_site, tmp_path, visit):
    server = Server(tmp_path / "home", python=(sys.executable, "-S"), PYTHONPATH=str(small_site))
    try:
        page = visit(f"{server.url}/Explore")
        page.wait_for_selector(".st-key-timeline-holder .js-plotly-plot .bars path")
        assert page.get_by_text("Recorded on NVIDIA H200").first.is_visible()
        assert not page.locator('[data-testid="stException"]').count()
        home = visit(server.url)
        home.get_by_text("This is the small install").first.wait_for()
    finally:
        server.close()


def test_the_small_install_names_only_what_it_needs():
    names = {line.split("=")[0].split(">")[0] for line in (ROOT / "requirements-view.txt").read_text().splitlines()}
    assert not names & {"torch", "triton", "liger-kernel", "distributed", "cryptography", "nvidia-ml-py"}
