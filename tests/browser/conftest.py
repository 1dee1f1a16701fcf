"""A real server and a real Chromium."""

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest
from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parents[2]
FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-sync"]


class Server:
    """`streamlit run app.py` with a store of its own."""

    def __init__(self, home, python=(sys.executable,), **environment):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.log = home.parent / f"server-{self.port}.log"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [*python, "-m", "streamlit", "run", "app.py", "--server.port", str(self.port)],
                cwd=ROOT,
                env=os.environ | {"FUSIONSCOPE_HOME": str(home), "OMP_NUM_THREADS": "1"} | environment,
                stdout=log,
                stderr=log,
            )
        end = time.monotonic() + 60
        while not self._healthy():
            assert self.process.poll() is None, self.log.read_text()
            assert time.monotonic() < end, "the server did not start"
            time.sleep(0.1)

    def _healthy(self):
        try:
            with urllib.request.urlopen(f"{self.url}/_stcore/health", timeout=2) as answer:
                return answer.status == 200
        except OSError:
            return False

    def close(self):
        self.process.terminate()
        self.process.wait(20)


@pytest.fixture(scope="module")  # while it is open its event loop runs in this thread, and other tests need their own
def chromium():
    names = ("chromium", "chromium-browser", "google-chrome")
    path = next((found for name in names if (found := shutil.which(name))), None)
    if path is None:
        pytest.skip("there is no Chromium on the PATH (Debian: apt-get install chromium)")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    started = Server(tmp_path_factory.mktemp("browser") / "home")
    yield started
    started.close()


@pytest.fixture
def visit(chromium):
    """Opens pages as visitors of their own; console errors of the page itself fail the test."""
    contexts = []

    def open_page(url, width=1280, height=1000):
        context = chromium.new_context(viewport={"width": width, "height": height})
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(60_000)
        page.goto(url, wait_until="domcontentloaded")
        return page

    yield open_page
    for context in contexts:
        context.close()
