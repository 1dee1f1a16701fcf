"""`python -m benchmarks.runs_page [RUNS]`: the Runs page with thousands of runs (2,000 if none is given): listing them,
the first paint in a new browser and again in the same one, and a filter change. The same with the shipped recordings
alone stands beside it. Needs Chromium and playwright.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from core.store import runfile
from core.store.store import RECORDINGS, Store
from core.workload import with_changes

ROOT = Path(__file__).resolve().parents[1]
PORT = 8592
VISITS = 7
FILTERS = 12
_SOURCE_BYTES_MAX = 60_000
_SEARCH = "stTextInputField"
_ROWS = ("first visit to a new server", "new browser", "same browser", "filter change")
_BARE = (
    "import pandas as pd, streamlit as st\n"
    "st.markdown('{0} of {0} runs')\n"
    "st.dataframe(pd.DataFrame({{'number': range({0})}}), on_select='rerun', selection_mode='multi-row')\n"
)
#: What the line says, once a canvas that was not there before holds a drawn table (glide-data-grid fills its ground first
#: and its text in the same frame).
_SAYS = r"""() => {
  const said = document.body.innerText.match(/([0-9,]+) of [0-9,]+ runs/);
  const canvas = document.querySelector('[data-testid=stDataFrame] canvas:not([data-seen])');
  if (!said || !canvas || !canvas.width) return null;
  const drawn = canvas.getContext('2d').getImageData(canvas.width >> 1, canvas.height >> 1, 1, 1).data[3] > 0;
  return drawn ? said[0] : null;
}"""
_MARK = "() => document.querySelectorAll('[data-testid=stDataFrame] canvas').forEach(one => one.dataset.seen = 1)"


def make_runs(home: Path, count: int) -> None:
    """Fills a store with `count` runs: shipped recordings with another id, date and seed, packed and added as any run."""
    sources = [
        (runfile.read_manifest(path), runfile.read_trace_bytes(path), runfile.read_code(path))
        for path in sorted(RECORDINGS.glob(f"*{runfile.SUFFIX}"))
        if path.stat().st_size <= _SOURCE_BYTES_MAX
    ]
    store, start = Store(home), datetime(2026, 1, 1, tzinfo=UTC)
    for number, (manifest, trace, code) in zip(range(count), itertools.cycle(sources), strict=False):
        changed = dataclasses.replace(
            manifest,
            id=f"made-{number:06}",
            workload=with_changes(manifest.workload, seed=1 + number % 500),
            created=(start + timedelta(minutes=number)).isoformat(timespec="seconds"),
        )
        store.add(runfile.pack(changed, trace, code))


def main() -> None:
    """Prints the tables."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    path = next(
        (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None
    )
    if path is None:
        raise SystemExit("There is no Chromium on the PATH.")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        home = Path(folder) / "home"
        make_runs(home, count)
        _listing(home)
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        shown = len(list(RECORDINGS.glob(f"*{runfile.SUFFIX}")))
        bare = Path(folder) / "bare.py"
        bare.write_text(_BARE.format(count + shown))
        many = _page(browser, "app.py", "/Runs", home)
        few = _page(browser, "app.py", "/Runs", Path(folder) / "none")
        plain = _page(browser, str(bare), "/", home)
        browser.close()
    print(
        f"{'':28}{f'{count + shown:,} runs':>16}{f'{shown:,} runs':>16}{'ratio':>7}{'bare Streamlit':>16}{'ratio':>7}"
    )
    for row in itertools.zip_longest(_ROWS, many, few, plain):
        print(_line(*row))


def _line(name: str, many: list[float], few: list[float], plain: list[float] | None) -> str:
    ratio = statistics.median(many) / statistics.median(few)
    line = f"{name:28}{_told(many):>16}{_told(few):>16}{ratio:7.2f}"
    return (
        line if plain is None else f"{line}{_told(plain):>16}{statistics.median(many) / statistics.median(plain):7.2f}"
    )


def _listing(home: Path) -> None:
    cold = _timed(lambda: Store(home).entries())  # no index yet
    warm = [_timed(lambda: Store(home).entries()) for _ in range(VISITS)]
    store = Store(home)
    found = store.entries()
    again = [_timed(store.entries) for _ in range(VISITS)]
    index = (home / "index.json").stat().st_size
    print(f"listing {len(found):,} runs: without an index {cold:.0f} ms (n 1), from it {_told(warm)} "
          f"(ratio {cold / statistics.median(warm):.0f}), again {statistics.median(again):.3f} ms (n {len(again)}); "
          f"the index has {index / 1e6:.1f} MB")  # fmt: skip


def _page(browser: Browser, script: str, path: str, home: Path) -> list[list[float]]:
    """Times in ms, in the order of _ROWS; no filter changes where the page has no search."""
    with _server(script, home):
        url = f"http://127.0.0.1:{PORT}{path}"
        context = browser.new_context()
        first, tab = _visit(context, url)
        new, again = [], []
        for _ in range(VISITS):
            other = browser.new_context()
            new.append(_visit(other, url)[0])
            other.close()
        for _ in range(VISITS):
            tab.close()
            spent, tab = _visit(context, url)
            again.append(spent)
        found = [[first], new, again]
        if tab.get_by_test_id(_SEARCH).count():
            found.append(
                [_filter(tab, text) for text in itertools.islice(itertools.cycle(("eager", "liger")), FILTERS)]
            )
        context.close()
    return found


def _visit(context: BrowserContext, url: str) -> tuple[float, Page]:
    tab = context.new_page()
    start = time.perf_counter()
    tab.goto(url, wait_until="commit")
    tab.wait_for_function(_SAYS, timeout=60_000)
    spent = (time.perf_counter() - start) * 1e3
    tab.wait_for_timeout(1000)  # what the page still does in peace is none of the next measurement's
    return spent, tab


def _filter(tab: Page, text: str) -> float:
    before = tab.evaluate(_SAYS)
    box = tab.get_by_test_id(_SEARCH)
    box.fill(text)
    tab.evaluate(_MARK)
    start = time.perf_counter()
    box.press("Enter")
    tab.wait_for_function(
        f"(before) => {{ const now = ({_SAYS})(); return now && now !== before; }}", arg=before, timeout=60_000
    )
    spent = (time.perf_counter() - start) * 1e3
    tab.wait_for_timeout(500)
    return spent


@contextlib.contextmanager
def _server(script: str, home: Path) -> Iterator[None]:
    """`streamlit run SCRIPT` with a home of its own, until the block ends."""
    process = subprocess.Popen(
        [sys.executable, "-m", "streamlit", "run", script, "--server.port", str(PORT)],
        cwd=ROOT,
        env=os.environ | {"FUSIONSCOPE_HOME": str(home)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        _wait_for_server()
        yield
    finally:
        process.terminate()
        process.wait(20)


def _wait_for_server() -> None:
    for _ in range(600):
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{PORT}/_stcore/health", timeout=2).close()
            return
        except OSError:
            time.sleep(0.1)
    raise SystemExit("The server did not start.")


def _timed(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return (time.perf_counter() - start) * 1e3


def _told(times: list[float]) -> str:
    return f"{statistics.median(times):.0f} ms (n {len(times)})"


if __name__ == "__main__":
    main()
