"""Builds tiny traces by hand: each function makes one event as Kineto writes it (times in us)."""

import json
from typing import Any

CPU, GPU = 100, 0


def event(name: str, cat: str, ts: Any, dur: Any, *, pid: Any = CPU, tid: Any = 1, **args: Any) -> dict[str, Any]:
    return {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur, "args": args}


def op(name: str, ts: Any, dur: Any, *, tid: Any = 1, dims: Any = None, strides: Any = None) -> dict[str, Any]:
    inputs = {"Input Dims": dims, "Input Strides": strides}
    return event(name, "cpu_op", ts, dur, tid=tid, **{key: given for key, given in inputs.items() if given is not None})


def annotation(name: str, ts: Any, dur: Any, *, tid: Any = 1) -> dict[str, Any]:
    return event(name, "user_annotation", ts, dur, tid=tid)


def launch(correlation: Any, ts: Any, dur: Any, *, name: str = "cudaLaunchKernel", tid: Any = 1) -> dict[str, Any]:
    return event(name, "cuda_runtime", ts, dur, tid=tid, correlation=correlation)


def kernel(
    name: str, correlation: Any, ts: Any, dur: Any, *, stream: int = 7, device: int = GPU, grid: Any = (8, 1, 1)
) -> dict[str, Any]:
    found = event(
        name, "kernel", ts, dur, pid=device, tid=stream, correlation=correlation, stream=stream, device=device
    )
    shape = {"grid": list(grid), "block": [128, 1, 1], "registers per thread": 32, "shared memory": 1024}
    found["args"].update(shape)
    return found


def copy(correlation: Any, ts: Any, dur: Any, *, name: str = "Memcpy DtoD", cat: str = "gpu_memcpy") -> dict[str, Any]:
    return event(name, cat, ts, dur, pid=GPU, tid=7, correlation=correlation, stream=7, device=GPU)


def trace(*events: dict[str, Any], **top: Any) -> bytes:
    return json.dumps({**top, "traceEvents": list(events)}).encode()


def two_steps(*, second_mul: bool = True) -> list[dict[str, Any]]:
    """Two steps of an eager layer: linear > addmm (a memset and a GEMM), then mul; the GPU lags behind the CPU."""
    events: list[dict[str, Any]] = []
    for number, at in ((0, 100), (1, 200)):
        first = 10 * (number + 1)
        events += [
            annotation(f"ProfilerStep#{number}", at, 80),
            op("aten::linear", at + 5, 40),
            op("aten::t", at + 6, 4),
            op("aten::addmm", at + 12, 30),
            launch(first, at + 15, 3, name="cudaMemsetAsync"),
            launch(first + 1, at + 20, 5),
            op("aten::mul", at + 50, 20),
            launch(first + 2, at + 55, 5),
            copy(first, at + 30, 2, name="Memset (Device)", cat="gpu_memset"),
            kernel("ampere_sgemm_128x64_tn", first + 1, at + 35, 30 + number),
        ]
        if second_mul or number == 0:
            events.append(kernel("void at::native::vectorized_elementwise_kernel<4>", first + 2, at + 68, 10))
    return events
