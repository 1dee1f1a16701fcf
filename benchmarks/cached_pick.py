"""`python -m benchmarks.cached_pick`: from a pick to its chart where the run is cached, on the server's side.

One run of the Explore page's whole script for each pick, as Streamlit runs it for a visitor, with all of its charts and
tables. Beside it a bare script: json.load of the same trace and one Plotly timeline of all its events.
"""

from __future__ import annotations

import gzip
import json
import statistics
import time
from pathlib import Path
from typing import Any

import plotly.graph_objects as go
from streamlit.testing.v1 import AppTest

from core.store.runfile import read_trace_bytes
from core.store.store import RECORDINGS, Store

ROOT = Path(__file__).resolve().parents[1]
PICKS = (
    ("geglu_mlp", "eager"),
    ("geglu_mlp", "compile"),
    ("linear", "eager"),
    ("geglu_mlp", "liger"),
    ("linear", "compile"),
)
STACKS = (
    ("geglu_mlp", "eager,compile,liger,compile_dynamic"),
    ("swiglu_mlp", "eager,compile,liger,compile_liger"),
    ("rms_norm", "eager,compile,liger,reduce_overhead"),
)
ROUNDS = 20


def main() -> None:
    """Prints the table."""
    page = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60).switch_page("pages/1_Explore.py").run()
    ours, stacked = _picked(page, PICKS), _picked(page, STACKS)
    entries = [entry for entry in Store(Path("/nonexistent"), RECORDINGS).entries() if entry.head.status == "ok"][:40]
    bare = [_bare(read_trace_bytes(entry.path) or b"") for entry in entries for _ in range(3)]
    for what, taken in (("cached run", ours), ("four cached runs", stacked)):
        p95 = statistics.quantiles(taken, n=20)[-1]
        print(f"pick to page, {what}, server side: median {statistics.median(taken) * 1e3:.0f} ms, p95 {p95 * 1e3:.0f} ms, "
              f"n {len(taken)}")  # fmt: skip
    print(f"four runs stacked over one: {statistics.median(stacked) / statistics.median(ours):.2f}x")
    print(f"bare script (json.load, one figure):   median {statistics.median(bare) * 1e3:.0f} ms, n {len(bare)}; "
          f"ours {statistics.median(ours) / statistics.median(bare):.2f}x, with every chart and table of the page")  # fmt: skip


def _picked(page: AppTest, picks: tuple[tuple[str, str], ...]) -> list[float]:
    """Seconds of the page's script for each pick; the first round, which fills the caches, is left out."""
    taken: list[float] = []
    for round_number in range(ROUNDS + 1):
        for layer, backend in picks:
            page.query_params.clear()
            page.query_params["layer"], page.query_params["backend"] = layer, backend
            start = time.perf_counter()
            page.run()
            if round_number:
                taken.append(time.perf_counter() - start)
            assert page.get("plotly_chart"), "the page drew no chart"
    return taken


def _bare(trace: bytes) -> float:
    start = time.perf_counter()
    events: list[dict[str, Any]] = [e for e in json.loads(gzip.decompress(trace))["traceEvents"] if e.get("ph") == "X"]
    lanes = {key: index for index, key in enumerate(sorted({(str(e["pid"]), str(e["tid"])) for e in events}))}
    figure = go.Figure(
        go.Bar(
            orientation="h",
            base=[e["ts"] for e in events],
            x=[e.get("dur", 0) for e in events],
            y=[lanes[(str(e["pid"]), str(e["tid"]))] for e in events],
            hovertext=[e["name"] for e in events],
        )
    )
    figure.to_json()
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
