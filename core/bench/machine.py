"""What this machine is and what it was seen to do: device, versions, and the rates that estimates rest on."""

from __future__ import annotations

import functools
import importlib.metadata
import os
import platform
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import torch

from core.backends import BACKENDS, Backend
from core.bench import gpu
from core.estimate import Rates
from core.store.manifest import Device, Machine
from core.workload import DTYPES

TORCH_DTYPES: dict[str, torch.dtype] = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}
#: Seconds of one cold compile on an H200 host and on a 2-core CPU; only for estimates shown before a run.
_COMPILE_S = {"cuda": 1.5, "cpu": 8.0}


def torch_device() -> str:
    """Where runs happen: the first GPU, else the CPU."""
    return "cuda" if torch.cuda.is_available() else "cpu"


def describe_device() -> Device:
    """The device's name and limits."""
    if torch.cuda.is_available():
        properties = torch.cuda.get_device_properties(0)
        return Device(
            kind="gpu",
            name=properties.name,
            memory_bytes=properties.total_memory,
            driver=gpu.driver_version(),
            cuda=str(torch.version.cuda),
            compute_capability=f"{properties.major}.{properties.minor}",
            multiprocessors=properties.multi_processor_count,
        )
    return Device(kind="cpu", name=_cpu_name(), memory_bytes=_cpu_memory("MemTotal"), cores=torch.get_num_threads())


def versions() -> dict[str, str | None]:
    """Versions of what shapes a result, as plain strings; None where not installed."""
    found: dict[str, str | None] = {"python": platform.python_version(), "torch": str(torch.__version__)}
    for package, name in (("triton", "triton"), ("liger-kernel", "liger_kernel")):
        try:
            found[name] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            found[name] = None
    found["cuda"] = str(torch.version.cuda) if torch.version.cuda else None
    found["system"] = f"{platform.system()} {platform.machine()}"
    return found


def look_over() -> Machine:
    """Looks the machine over; the first time in a process takes about a second, for the rates are measured then."""
    device = torch_device()
    known = versions()
    gaps = {backend.name: gap for backend in BACKENDS if (gap := _gap(backend, device, known)) is not None}
    return Machine(device=describe_device(), versions=known, rates=rates(device), gaps=gaps)


def _gap(backend: Backend, device: str, known: dict[str, str | None]) -> str | None:
    """Why the backend cannot run here, None where it can."""
    if backend.needs_gpu and device == "cpu":
        return f"{backend.title}: a GPU is needed, and this machine has none that torch can use."
    if backend.twin == "liger" and known["liger_kernel"] is None:
        return f"{backend.title}: liger-kernel is not installed; run make setup again on Linux."
    compilers = ("g++", "clang++") if device == "cpu" else ("gcc", "clang", "cc")
    environment = "CXX" if device == "cpu" else "CC"
    if backend.compiles and not (any(map(shutil.which, compilers)) or os.environ.get(environment)):
        return f"{backend.title} needs a compiler; install {compilers[0]} (Debian: apt-get install {compilers[0]})."
    return None


def rates(device: str) -> Rates:
    """What this device was seen to do, measured once a process, and its free memory as of now."""
    flops_per_s, bytes_per_s = _measured_rates(device)
    return Rates(flops_per_s, bytes_per_s, _COMPILE_S[device], free_memory_bytes(device))


def free_memory_bytes(device: str) -> int | None:
    """Memory a new run can take."""
    if device == "cuda":
        return int(torch.cuda.mem_get_info()[0]) + int(torch.cuda.memory_reserved() - torch.cuda.memory_allocated())
    return _cpu_memory("MemAvailable")


@functools.cache
def _measured_rates(device: str) -> tuple[dict[str, float], float]:
    size = 4096 if device == "cuda" else 384
    flops_per_s: dict[str, float] = {}
    for name in DTYPES:
        a = torch.randn(size, size, device=device).to(TORCH_DTYPES[name])
        flops_per_s[name] = 2 * size**3 / _best_of(functools.partial(torch.matmul, a, a), device)
    source = torch.empty(1 << (28 if device == "cuda" else 25), dtype=torch.uint8, device=device)
    target = torch.empty_like(source)
    copy_s = _best_of(lambda: target.copy_(source), device)
    return flops_per_s, 2 * source.numel() / copy_s


def _best_of(call: Callable[[], object], device: str, tries: int = 3) -> float:
    call()
    seconds = []
    for _ in range(tries):
        if device == "cuda":
            torch.cuda.synchronize()
        start = time.perf_counter()
        call()
        if device == "cuda":
            torch.cuda.synchronize()
        seconds.append(time.perf_counter() - start)
    return max(min(seconds), 1e-7)


def _cpu_name() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine() or "CPU"


def _cpu_memory(field: str) -> int | None:
    meminfo = Path("/proc/meminfo")
    if not meminfo.exists():
        return None
    for line in meminfo.read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) * 1024
    return None
