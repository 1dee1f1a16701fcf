"""`python -m benchmarks.sweep`: does watching a sweep change what it measures, and what does it cost?

Beside each series stands a bare script in a process of its own that calls the same layer at the same sizes, profiles as
many steps, exports as many traces and times as many steps, and counts nothing. Both take turns, run after run.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time

from core.analysis.ledger import Call
from core.bench.series_host import SeriesHost
from core.store import runfile
from core.sweep import Sweep, make_sweep, plan
from core.sweep_order import point_order

REPEATS = 3
_ON_GPU = {"hidden": "768", "intermediate": "3072", "seq": "128", "dtype": "bf16"}
_ON_CPU = {"hidden": "256", "intermediate": "1024", "seq": "64", "dtype": "fp32"}
_VALUES = "16,8,4,2,1,3,6,12"
_BARE = """
import gzip, json, os, sys, tempfile, time, torch
import torch.nn.functional as F
from torch.profiler import ProfilerActivity, profile, record_function, schedule
batches, seq, hidden, wide, dtype, compiled, steps, burst_s = json.loads(sys.argv[1])
device = "cuda" if torch.cuda.is_available() else "cpu"
dtype = getattr(torch, dtype)
wait = torch.cuda.synchronize if device == "cuda" else lambda: None
class Mlp(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.gate, self.up, self.down = (torch.nn.Linear(a, b, bias=False, device=device, dtype=dtype)
                                         for a, b in ((hidden, wide), (hidden, wide), (wide, hidden)))
    def forward(self, x):
        return self.down(F.gelu(self.gate(x), approximate="tanh") * self.up(x))
if compiled:
    import torch._inductor.config as config
    config.compile_threads = 1
    config.cpp.enable_kernel_profile = True
    folder = tempfile.mkdtemp()
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = os.environ["TRITON_CACHE_DIR"] = folder
module = Mlp().eval()
call = torch.compile(module) if compiled else module
kinds = [ProfilerActivity.CPU] + ([ProfilerActivity.CUDA] if device == "cuda" else [])
medians = []
with torch.no_grad():
    for batch in batches:
        x = torch.randn(batch, seq, hidden, device=device, dtype=dtype)
        for _ in range(3): call(x)
        wait()
        with tempfile.TemporaryDirectory() as there:
            with profile(activities=kinds, schedule=schedule(wait=1, warmup=1, active=steps), record_shapes=True,
                         on_trace_ready=lambda p: p.export_chrome_trace(there + "/t.json.gz")) as p:
                for at in range(steps + 2):
                    with record_function("step"): call(x)
                    if at == 1: wait()
                    p.step()
        start = time.perf_counter()
        tries = 20 if device == "cuda" else 1
        for _ in range(tries): call(x)
        wait()
        count = max(20 if device == "cuda" else 5, min(200, int(burst_s * tries / (time.perf_counter() - start))))
        if device == "cuda":
            events = [torch.cuda.Event(enable_timing=True) for _ in range(count + 1)]
            wait(); events[0].record()
            for event in events[1:]: call(x); event.record()
            wait()
            times = [a.elapsed_time(b) * 1e3 for a, b in zip(events, events[1:])]
        else:
            marks = [time.perf_counter()]
            for _ in range(count): call(x); marks.append(time.perf_counter())
            times = [(b - a) * 1e6 for a, b in zip(marks, marks[1:])]
        times.sort()
        medians.append(times[len(times) // 2])
print(json.dumps(medians))
"""


def main() -> None:
    """Prints the table."""
    on_gpu = _has_gpu()
    sizes = _ON_GPU if on_gpu else _ON_CPU
    print(f"gated MLP, batches {_VALUES}, {'GPU' if on_gpu else 'CPU'}, {REPEATS} turns each; bare script = 1")
    for backend in ("eager", "compile"):
        sweep = make_sweep({"layer": "geglu_mlp", "axis": "batch", "values": _VALUES, "backends": backend, **sizes})
        ours, bare = [], []
        for _ in range(REPEATS):
            ours.append(_ours(sweep))
            bare.append(_bare(sweep, 0.1 if on_gpu else 0.25))
        per_size = [
            statistics.median(turn[0][at] for turn in ours) / statistics.median(turn[0][at] for turn in bare)
            for at in range(len(sweep.points))
        ]
        whole = statistics.median(turn[1] for turn in ours) / statistics.median(turn[1] for turn in bare)
        print(f"{backend:8} step medians {statistics.median(per_size):.2f}x (sizes from {min(per_size):.2f} to "
              f"{max(per_size):.2f}), whole series {whole:.2f}x "
              f"({statistics.median(turn[1] for turn in ours):.1f} s, process start included)")  # fmt: skip


def _ours(sweep: Sweep) -> tuple[list[float], float]:
    """Median step by size in µs, and seconds of the whole series."""
    start, host = time.perf_counter(), SeriesHost()
    calls: dict[int, Call | None] = {}
    medians: list[float] = []
    try:
        for task in plan(sweep):
            data = host.perform(point_order("bench", sweep, task, calls), lambda text, done, total: None)
            manifest = runfile.read_manifest(data)
            assert manifest.point is not None and manifest.step_us is not None, manifest.failure
            calls[task.order] = manifest.point.call
            medians.append(statistics.median(manifest.step_us.values))
    finally:
        host.close()
    return medians, time.perf_counter() - start


def _bare(sweep: Sweep, burst_s: float) -> tuple[list[float], float]:
    sizes, start = dict(sweep.base.sizes), time.perf_counter()
    dtype = {"bf16": "bfloat16", "fp32": "float32"}[sweep.base.dtype]
    order = [
        [point[0] for point in sweep.points],
        *(sizes[name] for name in ("seq", "hidden", "intermediate")),
        dtype,
        sweep.backends[0] != "eager",
        sweep.base.steps,
        burst_s,
    ]
    done = subprocess.run([sys.executable, "-c", _BARE, json.dumps(order)], capture_output=True, check=True)
    return json.loads(done.stdout), time.perf_counter() - start


def _has_gpu() -> bool:
    code = "import torch; print(torch.cuda.is_available())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    return done.stdout.strip() == "True"


if __name__ == "__main__":
    main()
