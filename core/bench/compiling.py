"""Cold compiles, one after the other: what each took, chose, and what its kernels truly cost.

Inductor picks a launch configuration by timing candidates at compile time, and its timings are rough: two cold
compiles of the same module can run at different speeds. A run therefore holds several, unless it is a light one of many,
and then says so.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import msgspec

from core.analysis.busy import step_windows
from core.analysis.kernels import kernel_table
from core.analysis.spread import Spread, spread
from core.bench import torch_internals
from core.bench.build import Built, step_of
from core.bench.gpu import wait_for_clocks
from core.bench.timing import Step, settled_window, warm_up
from core.store.manifest import Compile, Protocol, TunedKernel, is_throttled
from core.trace import Tables
from core.workload import Workload, backend_of

_FRESH_TIMEOUT_S = 300
_compiles_in_process = 0


def note_compile() -> None:
    """Says that something was compiled in this process: what comes after it is no first compile any more."""
    global _compiles_in_process
    _compiles_in_process += 1


def cold_compile(workload: Workload, built: Built, device: str) -> tuple[Step, Compile, torch_internals.Observation]:
    """Compiles by a first call. The caller holds `torch_internals.cold()` open for as long as it uses the step."""
    step = step_of(built, backend_of(workload).apply(built.module))
    row, seen, error = first_call(step, device)
    if error is not None:
        raise error
    note_compile()
    return step, row, seen


def first_call(
    step: Step, device: str, *, cold: bool = True
) -> tuple[Compile, torch_internals.Observation, Exception | None]:
    """A step's first call, observed: what it compiled, and for how long; also where it failed, with what it raised. `cold`
    says that no disk cache can serve it.

    The row says "first" where nothing had been compiled in this process before; see `note_compile`.
    """
    process = "warm" if _compiles_in_process else "first"
    with torch_internals.observe() as seen:
        start = time.perf_counter()
        error = None
        try:
            warm_up(step, device, calls=1)
        except Exception as raised:  # noqa: BLE001  # what was compiled until then is told all the same
            error = raised
        first_call_s = time.perf_counter() - start
    kernels = tuple(TunedKernel(t.kernel, t.chosen, t.candidates, None, None, None) for t in seen.tunings)
    row = Compile(
        process=process,
        cold=cold,
        first_call_s=round(first_call_s, 4),
        stages_s=seen.stages_s,
        kernels=kernels,
        kernel_time_us=None,
        graph_breaks=seen.graph_breaks,
    )
    return row, seen, error


class NotCompiledError(RuntimeError):
    """torch.compile fell back to eager without a word; its profile would be eager's under another name."""


def check_compiled(tables: Tables) -> None:
    """Raises NotCompiledError where no compiled code ran in the profile."""
    if not any(name.startswith("Torch-Compiled Region") for name in tables.events["name"].unique().to_pylist()):
        raise NotCompiledError("no compiled region ran")


def with_true_times(row: Compile, tables: Tables) -> Compile:
    """The same compile with what the profiler saw its kernels take."""
    table = kernel_table(tables)
    steps = step_windows(tables)
    filled = []
    for kernel in row.kernels:
        ran = table[table["name"] == kernel.name]
        if ran.empty:
            filled.append(kernel)
            continue
        first = ran.iloc[0]
        true_us = Spread(
            n=int(first["n"]),
            median=float(first["median_us"]),
            min=float(first["min_us"]),
            max=float(first["max_us"]),
            p25=float(first["p25_us"]),
            p75=float(first["p75_us"]),
        )
        filled.append(replace(kernel, grid=first["grid"], block=first["block"], true_us=true_us))
    kernel_time = spread(steps["kernel_time_us"].to_numpy()) if len(table) else None
    return replace(row, kernels=tuple(filled), kernel_time_us=kernel_time)


def profiled_compile(workload: Workload, built: Built, device: str, protocol: Protocol) -> Compile:
    """One cold compile, profiled for its kernels' true times, then thrown away."""
    with torch_internals.cold():
        step, row, _ = cold_compile(workload, built, device)
        warm_up(step, device, protocol.warmup_calls)
        if device == "cuda":
            wait_for_clocks()
        window = settled_window(step, device, workload.label, protocol)
    # A window whose steps differ, or one at held-down clocks, tells no true times: they stay unknown.
    if window.why or any(is_throttled(sample) for sample in window.clocks):
        return row
    return with_true_times(row, window.tables)


def in_fresh_processes(
    workload: Workload, protocol: Protocol, report: Callable[[int], None]
) -> tuple[tuple[Compile, ...], tuple[str, ...]]:
    """`protocol.fresh_process_compiles` compiles, each the first of a process of its own: what a plain script sees.

    Returns the rows, and a note for each process that failed.
    """
    rows: list[Compile] = []
    notes: list[str] = []
    order = msgspec.json.encode({"workload": workload, "protocol": protocol})
    for index in range(protocol.fresh_process_compiles):
        report(index)
        try:
            done = subprocess.run(
                [sys.executable, "-m", "core.bench.fresh"],
                input=order,
                capture_output=True,
                timeout=_FRESH_TIMEOUT_S,
                cwd=Path(__file__).resolve().parents[2],
                check=True,
            )
            rows.append(msgspec.json.decode(done.stdout.splitlines()[-1], type=Compile))
        except subprocess.TimeoutExpired:
            notes.append(f"A compile in a fresh process took over {_FRESH_TIMEOUT_S} s and was stopped.")
        except (subprocess.CalledProcessError, msgspec.MsgspecError, IndexError) as error:
            words = (getattr(error, "stderr", b"") or b"").decode(errors="replace").strip().splitlines()
            notes.append(f"A compile in a fresh process failed ({(words or [str(error)])[-1][:200]}).")
    return tuple(rows), tuple(notes)
