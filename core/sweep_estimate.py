"""What a sweep is likely to take on a machine, from the estimates of its points. Pure, computed, not measured."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, replace

from core.estimate import CALLS, check_fits, estimate
from core.store.manifest import Machine
from core.sweep import Sweep, plan, workload_at
from core.workload import WorkloadError, backend_of

#: What any point takes beside its steps, and what a series' process takes to start.
_POINT_S = 0.4
_PROCESS_S = 8.0


@dataclass(frozen=True)
class Likely:
    """Seconds in all, seconds of it compiling (as if every call of a compiling backend compiled), the largest memory of a
    point that fits in bytes, how many of its points do not fit, and why the first of them does not."""

    seconds: float
    compile_s: float
    memory_bytes: int
    unfit: int
    unfit_why: str | None


def estimate_sweep(sweep: Sweep, done: Set[int], machine: Machine) -> Likely:
    """What is missing of a sweep would take; `done` are the finished places of its plan."""
    missing = [task for task in plan(sweep) if task.order not in done]
    seconds, compile_s, memory, unfit, why = _PROCESS_S * len({task.process for task in missing}), 0.0, 0, 0, None
    # Against all of the device's memory: how much is free changes, and the worker looks again.
    whole = replace(machine.rates, free_memory_bytes=machine.device.memory_bytes)
    for task in missing:
        workload = workload_at(sweep, task.backend, task.index)
        seconds += _POINT_S
        try:
            check_fits(workload, whole, f"{machine.short} in all")
        except WorkloadError as problem:  # it will fail before it takes anything
            unfit, why = unfit + 1, why or str(problem)
            continue
        one = estimate(workload, machine.rates, cold_compiles=1 if backend_of(workload).compiles else 0)
        working_s = (CALLS + workload.steps) * (one.work_us or 0.0) / 1e6
        seconds += working_s + (one.compile_s or 0.0)
        compile_s += one.compile_s or 0.0
        memory = max(memory, one.memory_bytes)
    return Likely(seconds, compile_s, memory, unfit, why)
