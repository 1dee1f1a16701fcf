"""`python -m benchmarks.live_run`: pick to tables of a live eager run on a warm worker, beside the measuring itself.

The measuring is what the run file says of its own stages; what is left is queueing, the worker's errands, the way back,
and reading the trace into tables. A bare script that builds, warms up, profiles and exports stands beside it.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import msgspec

from core.engine import Engine
from core.store.manifest import protocol_for
from core.store.runfile import read_manifest
from core.store.store import Store
from core.workload import Workload, from_preset, with_changes

RUNS = 7
_BARE = """
import json, sys, time, torch
import torch.nn.functional as F
from torch.profiler import ProfilerActivity, profile, schedule
device = "cuda" if torch.cuda.is_available() else "cpu"
batch, seq, hidden, wide = json.loads(sys.argv[1])
def once():
    start = time.perf_counter()
    gate, up, down = (torch.randn(a, b, device=device, dtype=torch.bfloat16) for a, b in
                      ((wide, hidden), (wide, hidden), (hidden, wide)))
    x = torch.randn(batch, seq, hidden, device=device, dtype=torch.bfloat16)
    step = lambda: F.linear(F.gelu(F.linear(x, gate), approximate="tanh") * F.linear(x, up), down)
    kinds = [ProfilerActivity.CPU] + ([ProfilerActivity.CUDA] if device == "cuda" else [])
    with torch.no_grad():
        for _ in range(3): step()
        with profile(activities=kinds, schedule=schedule(wait=1, warmup=1, active=20), record_shapes=True,
                     on_trace_ready=lambda p: p.export_chrome_trace(sys.argv[2])) as p:
            for _ in range(22): step(); p.step()
    return time.perf_counter() - start
once(); print(json.dumps([once() for _ in range(7)]))
"""


def main() -> None:
    """Prints the table."""
    with tempfile.TemporaryDirectory() as folder:
        store, engine = Store(Path(folder), Path(folder) / "none"), Engine()
        _finish(engine, engine.submit("core.bench.tasks:look", b"", key="look", title="look"))
        base = from_preset("03_simple_mlp")
        workload = base if _on_gpu(engine) else with_changes(base, batch=1, hidden=256, intermediate=1024)
        rows = [_live(engine, store, workload) for _ in range(RUNS)][1:]
        engine.close()
    sizes = json.dumps([size for _, size in workload.sizes])
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-c", _BARE, sizes, str(Path(folder) / "bare.json.gz")]
        bare = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    whole, measuring, profiling = (statistics.median(column) for column in zip(*rows, strict=True))
    print(f"{workload.title}, median of {len(rows)} runs on a warm worker")
    print(f"pick to tables            {whole:8.3f} s")
    print(f"  the measuring itself    {measuring:8.3f} s  (stages named in the run file)")
    print(f"  beyond it               {max(w - m for w, m, _ in rows):8.3f} s  (the largest)")
    print(f"build, warm up, profile   {profiling:8.3f} s  ours, against {statistics.median(bare):.3f} s of a bare script: "
          f"{profiling / statistics.median(bare):.2f}x")  # fmt: skip


def _live(engine: Engine, store: Store, workload: Workload) -> tuple[float, float, float]:
    start = time.perf_counter()
    order = msgspec.json.encode({"workload": workload, "protocol": protocol_for(workload)})
    data = _finish(engine, engine.submit("core.bench.tasks:run_workload", order, key=f"run-{start}", title="run"))
    store.tables(store.add(data))
    whole = time.perf_counter() - start
    stages = read_manifest(data).stages_s
    profiling = sum(s for name, s in stages.items() if name.startswith(("Building", "Warming")))
    return whole, sum(stages.values()), profiling


def _on_gpu(engine: Engine) -> bool:
    return b'"kind":"gpu"' in _finish(engine, engine.submit("core.bench.tasks:look", b"", key="look2", title="look"))


def _finish(engine: Engine, job_id: str) -> bytes:
    while True:
        job = engine.job(job_id)
        if job is not None and job.state not in ("queued", "running"):
            if job.result is None:
                raise SystemExit(f"The run failed: {job.failure}")
            return job.result
        time.sleep(0.002)


if __name__ == "__main__":
    main()
