"""The doctor's half that needs torch: device, driver, clocks, profiler, Triton, Liger, torch.compile, CUDA graphs.

Everything is tried in small on the device that runs use, under the lock that runs hold, and leaves an empty device.
"""

from __future__ import annotations

import gc
import importlib.util
import itertools
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pynvml
import torch

from core.analysis.kernels import kernel_table
from core.bench import compiling, gpu, machine, timing, torch_internals
from core.health import Check, Examination, Finding, Probe, examined, tried
from core.store.manifest import Protocol, is_throttled, throttle_words
from core.trace import read_trace

Report = Callable[[str, int, int], None]

GPU_MEMORY_MIN_BYTES = 1_000_000_000
NO_GPU = "No GPU that torch can use: recordings still show, and live runs happen on the CPU."
FOR_A_GPU = "It is for a GPU, and torch can use none here."
NO_CONTEXT = "Not tried: the GPU reported an error before, and its context in this process is lost."
_DRIVER_PARAMS = Path("/proc/driver/nvidia/params")
_GPU_FILE = Path("/dev/nvidia0")
_PROFILED_STEPS = 3
_TRITON_SIZE = 1024
#: Each look adds another number, so that Triton compiles its kernel again also in a worker that has looked before.
_numbers = itertools.count(1)


class DeviceAnswersWrongError(RuntimeError):
    """What ran on the device gave another result than it must."""


def examine(report: Report, where: str) -> Examination:
    """All checks that need torch; a few seconds on a GPU, up to half a minute for the first compile on a CPU.

    `where` names this process; `report(text, done, total)` is told what happens now. A check with the failure
    "cuda_error" means that this process's CUDA context is lost; the checks after it are unknown then.
    """
    wanted = probes()
    report(f"trying {wanted[0].name}", 0, len(wanted))
    first = tried(wanted[0])
    checks = [first]
    if first.state == "problem":  # not even a lock can be named after a GPU that does not answer
        checks += [_untried(probe, "Not tried: the device itself does not answer.") for probe in wanted[1:]]
        return examined(where, checks)
    with gpu.exclusive(lambda: report("waiting for another process on this device", 0, len(wanted))):
        try:
            for index, probe in enumerate(wanted[1:], 1):
                report(f"trying {probe.name}", index, len(wanted))
                checks.append(_untried(probe, NO_CONTEXT) if _is_lost(checks) else tried(probe))
        finally:
            _clean(lost=_is_lost(checks))
    return examined(where, checks)


def _is_lost(checks: Sequence[Check]) -> bool:
    return any(check.failure == "cuda_error" for check in checks)


def _untried(probe: Probe, why: str) -> Check:
    return Check(probe.name, "unknown", why, probe.matters, "See to the problem above, then look again.")


def probes() -> tuple[Probe, ...]:
    """The checks in the order in which a run meets what they check; the device first."""
    return (
        Probe("Device", "A run shows what this device does.", device, "Bring the GPU's driver back first.", "nvidia-smi"),
        Probe("Driver and CUDA", "A driver that is older than torch's CUDA runs none of its kernels.",
              driver, "Install a driver that supports the CUDA version of this torch."),
        Probe("GPU memory", "A run that does not fit is refused; other programs on the GPU falsify its times.",
              memory, "See with nvidia-smi what else runs on the GPU.", "nvidia-smi"),
        Probe("GPU clocks", "A time without its clock is half a fact, and clocks that are held down make kernels slow.",
              clocks, "Install the driver's NVML library, libnvidia-ml.so, and in a container start it with the utility "
              "capability.", "NVIDIA_DRIVER_CAPABILITIES=compute,utility"),
        Probe("Profiler", "Every kernel and operator on the timeline comes from it.", profiler, _CUPTI_REMEDY, _CUPTI_COMMAND),
        Probe("Triton", "torch.compile and Liger have their kernels compiled by it on a GPU.",
              triton, "Install gcc, Python's headers and the triton that belongs to this torch.", "make clean setup"),
        Probe("Liger", "It is the backend of hand-written kernels.",
              liger, "See to Triton first; then install liger-kernel again.", "make clean setup"),
        Probe("torch.compile", "Every backend that compiles stands on Inductor and a compiler.",
              compiled, "See to the compiler and the headers first; then look again."),
        Probe("CUDA graphs", "The replayed step is timed by them, and reduce-overhead runs by them.",
              cuda_graph, "Update the driver to one that supports the CUDA version of this torch."),
    )  # fmt: skip


_CUPTI_REMEDY = (
    "Let everybody profile: put the line below into a file of /etc/modprobe.d, rebuild the initramfs and restart; "
    "a container instead is started with --cap-add=SYS_ADMIN."
)
_CUPTI_COMMAND = "options nvidia NVreg_RestrictProfilingToAdminUsers=0"


def device() -> Finding:
    """The device torch uses, tried with an addition."""
    where = machine.torch_device()
    known = machine.describe_device()
    x = torch.ones(2, device=where)
    if (x + 1).tolist() != [2.0, 2.0]:
        raise DeviceAnswersWrongError("1 + 1 is not 2 there")
    version = f"torch {torch.__version__}"
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if where == "cuda":
        many = torch.cuda.device_count()
        which = f"the first of {many} GPUs" if many > 1 else "the only GPU"
        limited = f" (CUDA_VISIBLE_DEVICES={visible})" if visible is not None else ""
        return Finding(
            "ok", f"{known.name}, compute capability {known.compute_capability}, {which}{limited}; {version}"
        )
    if not _GPU_FILE.exists():
        return Finding("warning", f"CPU {known.name}, {known.cores} threads; {version}. {NO_GPU}",
                       "For kernels of a GPU, run FusionScope on a machine with an NVIDIA GPU.")  # fmt: skip
    if torch.version.cuda is None:
        return Finding("warning", f"CPU {known.name}; this machine has an NVIDIA GPU, but {version} is built without CUDA.",
                       "Install the torch of PyPI, which is built with CUDA.",
                       "python -m pip install --force-reinstall --index-url https://pypi.org/simple torch")  # fmt: skip
    if visible is not None:
        return Finding("warning", f"CPU {known.name}; CUDA_VISIBLE_DEVICES={visible} hides the NVIDIA GPU from torch.",
                       "Unset it, or name a GPU that exists.", "unset CUDA_VISIBLE_DEVICES")  # fmt: skip
    return Finding("warning", f"CPU {known.name}; torch cannot use the NVIDIA GPU of this machine (driver "
                   f"{gpu.driver_version() or 'unknown'}, torch's CUDA {torch.version.cuda}).",
                   "Install a driver that supports that CUDA version, then restart.", "nvidia-smi")  # fmt: skip


def driver() -> Finding:
    """The driver's version, and the newest CUDA it supports against the CUDA that torch is built with."""
    if machine.torch_device() == "cpu":
        return Finding("not needed", FOR_A_GPU)
    pynvml.nvmlInit()
    try:
        version = str(pynvml.nvmlSystemGetDriverVersion())
        newest = int(pynvml.nvmlSystemGetCudaDriverVersion_v2())
    finally:
        pynvml.nvmlShutdown()
    found = (
        f"driver {version}, for CUDA up to {newest // 1000}.{newest % 1000 // 10}; torch's CUDA is {torch.version.cuda}"
    )
    if newest // 1000 < int(str(torch.version.cuda).split(".")[0]):
        return Finding("warning", f"{found}: it runs by compatibility libraries", "Install a newer driver.")
    return Finding("ok", found)


def memory() -> Finding:
    """Free memory of the GPU and who else uses it."""
    if machine.torch_device() == "cpu":
        return Finding("not needed", FOR_A_GPU)
    free_bytes, all_bytes = torch.cuda.mem_get_info()
    found = f"{free_bytes / 1e9:.1f} GB of {all_bytes / 1e9:.1f} GB free"
    others = gpu.other_processes()
    if others is None:
        found += "; other processes on it are unknown, NVML does not list this one either"
    elif others:
        held = [one.memory_bytes for one in others if one.memory_bytes is not None]
        told = f"{sum(held) / 1e9:.1f} GB" if len(held) == len(others) else "an unknown amount of memory"
        return Finding("warning", f"{found}; {len(others)} other processes hold {told}",
                       "Let them end before you measure.", "nvidia-smi")  # fmt: skip
    else:
        found += "; no other process on it"
    if free_bytes < GPU_MEMORY_MIN_BYTES:
        return Finding("warning", found, "Free memory of the GPU, or choose another one with CUDA_VISIBLE_DEVICES.")
    return Finding("ok", found)


def clocks() -> Finding:
    """One NVML reading of the clocks, and what holds them down at this moment."""
    if machine.torch_device() == "cpu":
        return Finding("not needed", FOR_A_GPU)
    sample = gpu.read_clocks(gpu.handle(), 0.0)
    if sample.sm_mhz is None:
        return Finding("unknown", "NVML does not tell the SM clock of this card; runs are shown without their clocks.")
    parts = [f"SM {sample.sm_mhz:,} MHz"]
    parts += [f"memory {sample.memory_mhz:,} MHz"] if sample.memory_mhz is not None else []
    parts += [f"{sample.power_w:.0f} W"] if sample.power_w is not None else []
    parts += [f"{sample.temperature_c} °C"] if sample.temperature_c is not None else []
    found = f"{', '.join(parts)} (one reading)"
    if sample.throttle_reasons is None:
        return Finding("unknown", f"{found}; NVML does not tell what holds the clocks down.")
    if is_throttled(sample):
        return Finding("warning", f"{found}; held down by {', '.join(throttle_words(sample.throttle_reasons))}",
                       "Wait until the card is cool and idle, or raise its power limit.",
                       "nvidia-smi -q -d PERFORMANCE")  # fmt: skip
    return Finding("ok", f"{found}, not held down")


def profiler() -> Finding:
    """A profile of a small matrix product the way runs are profiled: do its kernels (on a CPU: operators) come back?"""
    where = machine.torch_device()
    a = torch.ones(256, 256, device=where)
    protocol = Protocol(steps=_PROFILED_STEPS)
    timing.warm_up(lambda: a @ a, where, protocol.warmup_calls)
    window = timing.settled_window(lambda: a @ a, where, "doctor", protocol)
    tables = read_trace(window.trace)
    if where == "cpu":
        calls = tables.events["name"].to_pylist().count("aten::mm")
        if calls != _PROFILED_STEPS:
            return Finding("problem", f"{calls} of {_PROFILED_STEPS} matrix products came back.",
                           "Install the pinned torch again.", "make clean setup")  # fmt: skip
        return Finding("ok", f"all {calls} profiled matrix products came back as operators")
    kernels = kernel_table(tables)
    restricted = _profiling_is_restricted()
    if kernels.empty:
        told = {True: "profiling is for administrators only", False: "profiling is allowed to everybody",
                None: "whether profiling is allowed is unknown"}[restricted]  # fmt: skip
        return Finding("problem", f"No kernel came back in {window.attempts} profiles; {told} (RmProfilingAdminOnly).",
                       _CUPTI_REMEDY, _CUPTI_COMMAND)  # fmt: skip
    launches = int(kernels["n"].sum())
    found = f"{launches} kernels of {_PROFILED_STEPS} matrix products came back (attempt {window.attempts})"
    if window.why is not None:
        return Finding(
            "warning", f"{found}, but not the same in each step: {window.why}", "Look again on a quiet machine."
        )
    told = "; hardware counters are for administrators only, and FusionScope needs none" if restricted else ""
    return Finding("ok", found + told)


def _profiling_is_restricted() -> bool | None:
    """What the driver says of profiling by others than administrators, None where it does not say."""
    if not _DRIVER_PARAMS.exists():
        return None
    for line in _DRIVER_PARAMS.read_text().splitlines():
        name, _, value = line.partition(":")
        if name == "RmProfilingAdminOnly":
            return value.strip() == "1"
    return None


def triton() -> Finding:
    """A kernel of our own, compiled with an empty cache and run."""
    if machine.torch_device() == "cpu":
        return Finding("not needed", FOR_A_GPU)
    from core.bench.doctor_kernel import add_number  # Triton exists on Linux alone

    number = next(_numbers)
    x = torch.arange(_TRITON_SIZE, dtype=torch.float32, device="cuda")
    out = torch.empty_like(x)
    with torch_internals.cold():
        start = time.perf_counter()
        add_number[(1,)](x, out, size=_TRITON_SIZE, number=number)
        torch.cuda.synchronize()
        seconds = time.perf_counter() - start
    if not torch.equal(out, x + number):
        raise DeviceAnswersWrongError("the kernel's result is wrong")
    return Finding("ok", f"a kernel of {_TRITON_SIZE:,} additions compiled cold and ran right ({seconds:.2f} s, n 1)")


def liger() -> Finding:
    """Liger's GEGLU kernel against plain torch."""
    if machine.torch_device() == "cpu":
        return Finding("not needed", FOR_A_GPU)
    if importlib.util.find_spec("liger_kernel") is None:
        return Finding("warning", "liger-kernel is not installed.", "Install it.", "make setup")
    start = time.perf_counter()
    from liger_kernel.ops import LigerGELUMulFunction  # it imports every kernel: seconds, and only where it is tried

    imported_s = time.perf_counter() - start
    generator = torch.Generator(device="cuda").manual_seed(0)
    gate, up = (torch.randn(16, 256, device="cuda", generator=generator) for _ in range(2))
    out = LigerGELUMulFunction.apply(gate, up)
    wanted = torch.nn.functional.gelu(gate, approximate="tanh") * up
    error = float((out - wanted).norm() / wanted.norm())
    if not error < 1e-5:
        raise DeviceAnswersWrongError(f"GEGLU differs from plain torch by {error:.1e}")
    return Finding(
        "ok", f"imported in {imported_s:.1f} s; GEGLU of 16 × 256 differs from plain torch by {error:.1e} (fp32)"
    )


def compiled() -> Finding:
    """x.sin() + 1, compiled by Inductor with empty caches and held against eager."""

    def sin_plus_one(x: torch.Tensor) -> torch.Tensor:
        return x.sin() + 1

    x = torch.linspace(-3, 3, 1000, device=machine.torch_device())
    with torch_internals.cold(), torch_internals.observe() as seen:
        start = time.perf_counter()
        out = torch.compile(sin_plus_one, fullgraph=True)(x)
        seconds = time.perf_counter() - start
    compiling.note_compile()
    error = float((out - sin_plus_one(x)).abs().max())
    if not error < 1e-5:
        raise DeviceAnswersWrongError(f"compiled code differs from eager by {error:.1e}")
    if not seen.code:
        return Finding("problem", "torch.compile ran the function and compiled nothing.",
                       "Unset TORCH_COMPILE_DISABLE and TORCHDYNAMO_DISABLE, then restart.")  # fmt: skip
    return Finding("ok", f"x.sin() + 1 compiled cold in {seconds:.1f} s (n 1), at most {error:.1e} from eager")


def cuda_graph() -> Finding:
    """An addition captured once and replayed; the replays are counted by what they add."""
    if machine.torch_device() == "cpu":
        return Finding("not needed", FOR_A_GPU)
    total = torch.zeros(1, device="cuda")
    samples, why = timing.graph_replay(lambda: total.add_(1), "cuda")
    if samples is None:
        return Finding(
            "problem", why or "The capture failed.", "Update the driver to one that supports torch's CUDA version."
        )
    replays = len(samples.values)
    if total.item() < replays:
        raise DeviceAnswersWrongError(f"of {replays} replays only {int(total.item())} added something")
    return Finding("ok", f"an addition was captured, and replayed {replays} times")


def _clean(*, lost: bool) -> None:
    """Leaves what a run leaves: no compiled code, no cached memory."""
    torch.compiler.reset()
    gc.collect()
    if torch.cuda.is_available() and not lost:
        torch_internals.clear_workspaces()
        torch.cuda.empty_cache()
