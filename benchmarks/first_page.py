"""`python -m benchmarks.first_page`: seconds from the start of the server, and of a visit, to a drawn timeline; and the
web process's memory. Needs Chromium and playwright. A bare Streamlit page with one Plotly bar chart stands beside it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil
from playwright.sync_api import Browser, BrowserContext, sync_playwright

ROOT = Path(__file__).resolve().parents[1]
PORT = 8591
_BARE = (
    "import streamlit as st, plotly.graph_objects as go\nst.plotly_chart(go.Figure(go.Bar(x=[1, 2, 3], y=[1, 2, 3])))\n"
)


def main() -> None:
    """Prints the table."""
    path = next(
        (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None
    )
    if path is None:
        raise SystemExit("There is no Chromium on the PATH.")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        bare = Path(folder) / "bare.py"
        bare.write_text(_BARE)
        rows = [
            ("FusionScope", *_visits(browser, "app.py", "/Explore", ".st-key-timeline-holder .bars path", folder)),
            ("bare Streamlit + Plotly", *_visits(browser, str(bare), "/", ".js-plotly-plot .bars path", folder)),
        ]
        browser.close()
    for name, first, cold, warm, memory in rows:
        print(f"{name:24} server start to chart {first:.1f} s, new browser {cold:.1f} s, again {warm:.1f} s, "
              f"web process {memory / 1e6:.0f} MB")  # fmt: skip


def _visits(browser: Browser, script: str, page: str, wait_for: str, home: str) -> tuple[float, float, float, int]:
    start = time.perf_counter()
    command = [
        sys.executable,
        "-m",
        "streamlit",
        "run",
        script,
        "--server.port",
        str(PORT),
        "--server.headless",
        "true",
    ]
    server = subprocess.Popen(
        command,
        cwd=ROOT,
        env=os.environ | {"FUSIONSCOPE_HOME": home},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        opened, visitor = _open(browser, page, wait_for)
        first = opened - start
        time.sleep(8)  # the worker has told of itself by then, and the first visitor is gone
        visitor.close()
        cold_start = time.perf_counter()
        context_time, context = _open(browser, page, wait_for)
        cold = context_time - cold_start
        warm_start = time.perf_counter()
        warm = _open(browser, page, wait_for, context)[0] - warm_start
        memory = psutil.Process(server.pid).memory_info().rss
    finally:
        server.terminate()
        server.wait(20)
    return first, cold, warm, memory


def _open(
    browser: Browser, page: str, wait_for: str, context: BrowserContext | None = None
) -> tuple[float, BrowserContext]:
    context = context or browser.new_context()
    tab = context.new_page()
    for _ in range(400):
        try:
            tab.goto(f"http://127.0.0.1:{PORT}{page}", wait_until="domcontentloaded")
            break
        except Exception:  # noqa: BLE001  # the server is still starting: there is nothing else to wait on
            time.sleep(0.05)
    tab.wait_for_selector(wait_for, timeout=60_000)
    return time.perf_counter(), context


if __name__ == "__main__":
    main()
