"""What a run is likely to need and take, from shapes and from what a machine was seen to do. Pure, computed, not measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from core.workload import DTYPES, Workload, WorkloadError, backend_of, cost_of

#: For estimates: calls beside the profiled ones, and what a new process with torch takes to start.
CALLS = 40
_PROCESS_S = 16.0
#: Bursts, replays and the second under load: what any run takes.
_RUN_S = 2.0
#: Where 32-bit indices end: kernels that count elements in them go wrong, some of them silently.
_INDEX_MAX = 1 << 31


@dataclass(frozen=True)
class Rates:
    """What a machine was seen to do, for estimates: matmul rate by dtype (FLOP/s), copy rate (bytes read + written a
    second), seconds of one cold compile, and free memory in bytes (None: unknown)."""

    flops_per_s: Mapping[str, float]
    bytes_per_s: float
    compile_s: float
    free_memory_bytes: int | None


@dataclass(frozen=True)
class Estimate:
    """Likely cost of a run. Computed from FLOPs and bytes alone: it knows no fixed cost of a kernel or a launch.

    `memory_bytes` is needed in all, with the fp32 reference that every run is compared with; `peak_bytes` by the steps
    themselves. `work_us` is the device's work in one step, `seconds` the whole run, `compile_s` the compiling in it;
    None where the machine's rates are unknown.
    """

    memory_bytes: int
    peak_bytes: int
    work_us: float | None = None
    seconds: float | None = None
    compile_s: float | None = None


def estimate(
    workload: Workload, rates: Rates | None = None, *, cold_compiles: int | None = None, fresh_processes: int = 0
) -> Estimate:
    """What a run is likely to need. `cold_compiles` is how many it holds (None: the backend's own number), and
    `fresh_processes` how many more have a process of their own."""
    cost, backend = cost_of(workload), backend_of(workload)
    to_fp32 = 4 // DTYPES[workload.dtype]
    tensors = cost.input_bytes + cost.intermediate_bytes + cost.output_bytes
    backward = workload.passes == "fwd_bwd"
    own = cost.weight_bytes + tensors + (cost.weight_bytes + tensors if backward else 0)
    memory = own + own * to_fp32
    if rates is None:
        return Estimate(memory_bytes=memory, peak_bytes=own)
    factor = 3 if backward else 1  # each matrix product has two in its backward pass
    moved = cost.fused_moved_bytes if backend.fuses else cost.moved_bytes
    touched = cost.weight_bytes + cost.input_bytes + cost.output_bytes if cost.flops else 0
    matmul_s = max(cost.flops / rates.flops_per_s[workload.dtype], touched / rates.bytes_per_s)
    work_s = factor * (matmul_s + moved / rates.bytes_per_s)
    reference_s = factor * (cost.flops / rates.flops_per_s["fp32"] + to_fp32 * cost.moved_bytes / rates.bytes_per_s)
    compile_s, calls = 0.0, CALLS + workload.steps
    if backend.compiles:
        count = backend.cold_compiles if cold_compiles is None else cold_compiles
        compile_s = (count + fresh_processes) * rates.compile_s
        calls += (count - 1 + fresh_processes) * workload.steps
    seconds = _RUN_S + calls * work_s + reference_s + compile_s + fresh_processes * _PROCESS_S
    return Estimate(memory, own, work_s * 1e6, seconds, compile_s)


def check_fits(workload: Workload, rates: Rates, where: str) -> None:
    """Raises WorkloadError where the estimate does not fit the free memory of `where` ("this CPU")."""
    needed, free = estimate(workload).memory_bytes, rates.free_memory_bytes
    if free is not None and needed > free:
        raise WorkloadError(
            f"These sizes need about {human_bytes(needed)}, and {where} has {human_bytes(free)} for them; choose smaller sizes."
        )


def warning(workload: Workload) -> str | None:
    """What may go wrong at these sizes although they fit, in a sentence; None where nothing is known to."""
    elements = cost_of(workload).largest_elements
    if elements < _INDEX_MAX:
        return None
    return (
        f"The largest tensor has {elements:,} elements, more than 32-bit indices reach (2^31): some kernels fail there, or "
        "compute something else without a word. Look at the numeric error before you believe a time."
    )


def human_bytes(count: float) -> str:
    """A byte count for people, in decimal units."""
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:,.0f} PB"
