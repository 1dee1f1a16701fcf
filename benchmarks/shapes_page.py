"""`python -m benchmarks.shapes_page`: from a click to the picture on Shapes, on the server's side.

One run of the page's whole script for each view of a shipped sweep and of the win map, as Streamlit runs it for a visitor,
with its findings, chart and table. Beside it a bare script: the manifests of the same points decoded, and one Plotly figure.
"""

from __future__ import annotations

import statistics
import time
import zipfile
from pathlib import Path

import msgspec
import plotly.graph_objects as go
from streamlit.testing.v1 import AppTest

from core.store.sweepentry import SweepEntry
from core.store.sweeps import SHIPPED, Sweeps

ROOT = Path(__file__).resolve().parents[1]
SWEEP_VIEWS = ("recompiles", "pays", "kernels", "step", "memory", "premium", "entries")
MAP_VIEWS = ("map", "recompiles", "entries")
ROUNDS = 10


def main() -> None:
    """Prints the table."""
    entries = Sweeps(Path("/nonexistent"), recordings=SHIPPED).entries()
    batches = next(e for e in entries if e.head.sweep.kind == "sweep" and e.head.sweep.base.layer == "geglu_mlp"
                   and e.head.sweep.axes == ("batch",))  # fmt: skip
    for entry, views in ((batches, SWEEP_VIEWS), (next(e for e in entries if e.head.sweep.kind == "map"), MAP_VIEWS)):
        bare = [_bare(entry) for _ in range(ROUNDS)]
        print(f"{entry.head.sweep.title}, {len(entry.done):,} runs; a bare script: median "
              f"{statistics.median(bare) * 1e3:.0f} ms, n {len(bare)}")  # fmt: skip
        for view in views:
            taken = _clicked(entry, view)
            print(f"  {view}: median {statistics.median(taken) * 1e3:.0f} ms, largest {max(taken) * 1e3:.0f} ms, n {len(taken)}; "
                  f"{statistics.median(taken) / statistics.median(bare):.2f}x the bare script")  # fmt: skip


def _clicked(entry: SweepEntry, view: str) -> list[float]:
    """Seconds of the page's script on that view; the first run, which reads the sweep, is left out."""
    page = AppTest.from_file(str(ROOT / "app.py"), default_timeout=120).switch_page("pages/2_Shapes.py")
    page.query_params["sweep"], page.query_params["view"] = entry.head.id, view
    page.run()
    assert not page.exception and page.header, "the page shows no sweep"
    taken = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        page.run()
        taken.append(time.perf_counter() - start)
    return taken


def _bare(entry: SweepEntry) -> float:
    start = time.perf_counter()
    x, y = [], []
    for path in sorted(entry.folder.glob("*.run.zip")):
        with zipfile.ZipFile(path) as archive:
            manifest = msgspec.json.decode(archive.read("manifest.json"))
        x.append(manifest["point"]["values"][0])
        y.append((manifest["point"]["kernel_time_us"] or {}).get("median"))
    go.Figure(go.Scatter(x=x, y=y, mode="markers")).to_json()
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
