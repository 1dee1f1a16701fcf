"""One point of a sweep, measured: its first call watched, everything after it timed without the watching."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pyarrow.compute as pc
import torch

from core.analysis.kernels import kernel_table
from core.analysis.ledger import RECOMPILE_LIMIT, Call, DimName, PointKernel
from core.analysis.roles import role_times, work
from core.analysis.spread import Spread, spread
from core.analysis.stack import CLOCKS_ALIKE
from core.bench import compiling, gpu, timing
from core.bench.attempts import attempts, graph_breaks
from core.bench.build import Built, numeric_errors
from core.bench.jits import JitWatch
from core.bench.packing import Measured
from core.store.manifest import ClockSample, Failure, Protocol, is_throttled
from core.trace import Tables
from core.workload import Workload, backend_of, layer_of

#: A point's burst without the profiler: many points share the time that one run has.
BURST_S = {"cuda": 0.1, "cpu": 0.25}
#: A window at low clocks is measured anew, after a pause: so many windows at most.
_WINDOWS, _COOL_S = 3, 0.5
_REGION = "Torch-Compiled Region: "
_MARKED = re.compile(
    r"marked L\['(\w+)'\]\.size\(\)\[(\d+)\] as dynamic but your code specialized it to be a constant \((\d+)\)"
)


class FirstCallError(Exception):
    """A first call, or one of those that follow it unmeasured, that failed: what the first one set off; the cause is what was
    raised."""

    def __init__(self, call: Call, measured: Measured) -> None:
        super().__init__("the first call failed")
        self.call, self.measured = call, measured


def first_call(
    workload: Workload, step: timing.Step, device: str, dims: tuple[DimName, ...], jits: JitWatch, *, cold: bool
) -> tuple[Call, Measured]:
    """The step's first call and what it set off; also the compile as a run keeps it, and the generated code.

    Raises FirstCallError where it failed.
    """
    measured = Measured()
    jits.taken()
    if not backend_of(workload).compiles:
        start = time.perf_counter()
        error: Exception | None = None
        try:
            timing.warm_up(step, device, calls=1)
        except Exception as raised:  # noqa: BLE001  # told below, with what was set off until then
            error = raised
        call = Call(first_call_s=round(time.perf_counter() - start, 6), jits=jits.taken())
        if error is not None:
            raise FirstCallError(call, measured) from error
        return call, measured
    row, seen, error = compiling.first_call(step, device, cold=cold)
    found = attempts(seen.records, seen.metrics, dims)
    if any(one.ok for one in found):
        compiling.note_compile()
        measured.compiles.append(row)
        measured.code = seen.code
        measured.fields["sources"] = tuple(seen.sources)
    call = Call(
        first_call_s=row.first_call_s,
        attempts=found,
        limit=next((one.limit for one in found if one.limit), None),
        graph_breaks=graph_breaks(seen.records) if seen.records or not found else None,
        jits=jits.taken(),
    )
    if error is not None:
        raise FirstCallError(call, measured) from error
    return call, measured


def timed_call(step: timing.Step, device: str) -> float:
    """Seconds that one call takes, until the device is done."""
    start = time.perf_counter()
    timing.warm_up(step, device, calls=1)
    return round(time.perf_counter() - start, 6)


def window(
    workload: Workload,
    step: timing.Step,
    device: str,
    protocol: Protocol,
    measured: Measured,
    best_mhz: int,
    report: Callable[[str], None],
) -> Tables:
    """Profiles the point's steps into `measured`; the tables of the profile. `best_mhz` is the highest SM clock of earlier
    windows (0: none yet): a lower one says that the device has not recovered from what ran before."""
    attempts_made = 0
    for attempt in range(_WINDOWS):
        if device == "cuda":
            gpu.wait_for_clocks()
        report(f"profiling {protocol.steps} steps")
        found = timing.settled_window(step, device, workload.label, protocol)
        attempts_made += found.attempts
        if attempt == _WINDOWS - 1 or not is_slowed(found.clocks, best_mhz):
            break
        report("letting the device cool down, its clocks were low")
        time.sleep(_COOL_S)
        timing.warm_up(step, device, calls=1)
    measured.trace = found.trace
    measured.fields |= {
        "profile_attempts": attempts_made,
        "settled_why": found.why,
        "window_clocks": found.clocks,
        "other_processes": gpu.other_processes() if device == "cuda" else None,
    }
    if measured.compiles and not found.why:
        measured.compiles[-1] = compiling.with_true_times(measured.compiles[-1], found.tables)
    return found.tables


def is_slowed(samples: Sequence[ClockSample], best_mhz: int) -> bool:
    """Whether the clocks were held down around a window, moved over it, or were lower than in the best one before. NVML's
    reasons alone do not tell: a power cap may show in the clocks and not in them."""
    clocks = [sample.sm_mhz for sample in samples if sample.sm_mhz is not None]
    low = bool(clocks) and max(best_mhz, *clocks) > min(clocks) * (1 + CLOCKS_ALIKE)
    return low or any(is_throttled(sample) for sample in samples)


def highest_mhz(measured: Measured) -> int:
    """The highest SM clock around the point's window, 0 where none was read."""
    return max((sample.sm_mhz or 0 for sample in measured.fields["window_clocks"]), default=0)


def unprofiled(
    workload: Workload, built: Built, step: timing.Step, device: str, measured: Measured, *, compare: bool
) -> None:
    """Times the step without the profiler, then compares its result with eager fp32 where `compare` says so."""
    measured.fields["step_us"], measured.fields["step_clocks"] = timing.step_times(
        step, device, burst_s=BURST_S[device]
    )
    measured.fields["graph_replay_why"] = "A point of a sweep is not replayed as a CUDA graph."
    if compare:
        try:
            measured.fields["errors"] = numeric_errors(workload, built, step, device)
        except torch.OutOfMemoryError:
            measured.notes.append("The fp32 reference did not fit into memory, so the numeric error is unknown.")


def served_by(tables: Tables) -> tuple[str, ...]:
    """The compiled entries whose code ran in the profile, in the order in which they first ran."""
    events = tables.events
    names = events["name"].filter(_in_steps(tables)).to_pylist()
    return tuple(dict.fromkeys(name.removeprefix(_REGION) for name in names if name.startswith(_REGION)))


def _in_steps(tables: Tables) -> Any:
    return pc.greater_equal(tables.events["step"], 0)


def with_service(call: Call, workload: Workload, served: tuple[str, ...], *, limit_before: bool) -> Call:
    """The call with what served its steps. `limit_before` says that this process hit the recompile limit before."""
    eager = backend_of(workload).compiles and not served
    hit = call.limit or (RECOMPILE_LIMIT if eager and limit_before else None)
    return replace(call, served_by=served, ran_eager=eager, limit=hit)


def kernels_of(
    workload: Workload, tables: Tables, device: str
) -> tuple[tuple[PointKernel, ...], Spread | None, dict[str, Spread]]:
    """The kernels of the profiled steps (operators on a CPU), the time of all of them a step, and that of each role."""
    roles, on_gpu = layer_of(workload).roles, device == "cuda"
    found = work(tables, roles, on_gpu=on_gpu)
    steps = found["step"].nunique()
    launched = {row["name"]: row for row in reversed(kernel_table(tables).to_dict("records"))} if on_gpu else {}
    kernels = []
    for (role, name), own in found.groupby(["role", "name"], sort=False):
        launch, time_us = launched.get(name, {}), spread(own["dur_ns"].to_numpy() / 1000)
        assert time_us is not None  # a group has at least one row
        kernels.append(
            PointKernel(
                name=str(name),
                role=str(role),
                family=str(own["family"].iloc[0]),
                grid=launch.get("grid"),
                block=launch.get("block"),
                per_step=len(own) / steps,
                time_us=time_us,
            )
        )
    in_all = spread(found.groupby("step")["dur_ns"].sum().to_numpy() / 1000)
    by_role = {one.role.name: one.time_us for one in role_times(found, roles)}
    return tuple(kernels), in_all, by_role


def fixed_dim(error: Exception, dims: tuple[DimName, ...]) -> Failure | None:
    """The failure where a dimension was marked dynamic that compiling fixes; None for any other error."""
    found = _MARKED.search(str(error))
    if found is None:
        return None
    name = next((one.size for one in dims if (one.tensor, one.dim) == (found[1], int(found[2]))), "")
    return Failure(
        "fixed_dim",
        f"{name or 'A dimension'} (dimension {found[2]} of {found[1]}) was marked dynamic, but the model fixes it to "
        f"{int(found[3]):,}; sweep another size or turn mark_dynamic off.",
    )
