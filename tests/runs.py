"""Small run files built by hand, for tests of what reads them."""

import gzip
import json

from core.store.manifest import Device, Manifest, Samples, protocol_for
from core.store.runfile import pack
from core.workload import make

H200 = Device(kind="gpu", name="NVIDIA H200", driver="580.1", memory_bytes=150_000_000_000)
CPU = Device(kind="cpu", name="Some CPU", cores=2)


def manifest(run_id="run-1", *, fields=None, **changes):
    """A manifest of an ok run on an H200."""
    workload = make(fields or {"layer": "linear"})
    known = {
        "id": run_id,
        "workload": workload,
        "protocol": protocol_for(workload),
        "created": "2026-01-02T03:04:05+00:00",
        "status": "ok",
        "device": H200,
        "versions": {"torch": "2.11.0", "python": "3.12.3"},
        "seconds": 1.5,
        "step_us": Samples("us", "device events", (10.0, 11.0, 12.0)),
    }
    return Manifest(**(known | changes))


def trace_bytes(events):
    """A gzipped Chrome trace."""
    return gzip.compress(json.dumps({"traceEvents": events}).encode())


def one_kernel_a_step(steps=2):
    """Events of steps that each run aten::addmm, its launch, and one kernel of 5 µs."""
    events = []
    for step in range(steps):
        at = 100 * step
        cpu = {"ph": "X", "pid": 1, "tid": 1}
        events += [
            {**cpu, "cat": "user_annotation", "name": f"ProfilerStep#{step + 2}", "ts": at, "dur": 90},
            {**cpu, "cat": "cpu_op", "name": "aten::addmm", "ts": at + 10, "dur": 30},
            {**cpu, "cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": at + 20, "dur": 5,
             "args": {"correlation": step + 1}},
            {"ph": "X", "pid": 0, "tid": 7, "cat": "kernel", "name": "nvjet_bias_TNT", "ts": at + 50, "dur": 5,
             "args": {"correlation": step + 1, "device": 0, "stream": 7, "grid": [2, 1, 1], "block": [384, 1, 1]}},
        ]  # fmt: skip
    return events


def run_file(run_id="run-1", *, events=None, code=None, **changes):
    """A whole run file as bytes."""
    trace = trace_bytes(one_kernel_a_step() if events is None else events)
    return pack(manifest(run_id, **changes), trace, code or {})
