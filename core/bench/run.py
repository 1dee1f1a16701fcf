"""One run from a Workload to a run file: build, compile, profile, time, check, pack. Failures are results too."""

from __future__ import annotations

import contextlib
import gc
import time
from collections.abc import Callable
from dataclasses import replace

import torch

from core.bench import compiling, failures, gpu, machine, timing, torch_internals
from core.bench.build import Built, build, numeric_errors, step_of
from core.bench.packing import Measured, packed
from core.estimate import check_fits, estimate
from core.store.manifest import Protocol
from core.workload import Workload, WorkloadError, backend_of

Report = Callable[[str, int, int], None]


def run(workload: Workload, protocol: Protocol, report: Report) -> bytes:
    """Carries the workload out on this machine; the run file as bytes, also where the run failed.

    `report(text, done, total)` is told what happens now. A failure of kind "cuda_error" means that this process's CUDA
    context is lost and only a new process can run again.
    """
    device = machine.torch_device()
    measured = Measured()
    failure = None
    with gpu.exclusive(lambda: report("Waiting for another process on this device", 0, 1)):
        measured.started_s = time.perf_counter()
        try:
            rates = machine.rates(device)
            _empty(device)  # after the rates, whose matrix products leave a workspace behind
            measured.fields["predicted"] = estimate(
                workload,
                rates,
                cold_compiles=protocol.cold_compiles,
                fresh_processes=protocol.fresh_process_compiles,
            )
            check_fits(workload, rates, "this GPU" if device == "cuda" else "this machine")
            _measure(workload, protocol, device, report, measured)
        except WorkloadError as error:
            failure = failures.Failure("does_not_fit", str(error))
        except Exception as error:  # noqa: BLE001  # whatever torch raises is this run's result
            failure = failures.describe(error)
        _release(workload, device, context_lost=failure is not None and failure.kind == "cuda_error")
    return packed(workload, protocol, measured, failure)


def _measure(workload: Workload, protocol: Protocol, device: str, report: Report, measured: Measured) -> None:
    stages = protocol.cold_compiles + protocol.fresh_process_compiles + 7
    since, current = time.perf_counter(), ""

    def say(text: str) -> None:
        nonlocal since, current
        if current:
            measured.stages_s[current] = round(time.perf_counter() - since, 4)
        since, current = time.perf_counter(), text
        report(text, len(measured.stages_s), stages)

    say("Building the layer on the device")
    held_bytes = torch.cuda.memory_allocated() if device == "cuda" else 0
    built = build(workload, device)
    with contextlib.ExitStack() as stack:
        if protocol.light and not backend_of(workload).replays_graphs:
            stack.enter_context(torch_internals.compiling_in_process())
        if backend_of(workload).compiles:
            step = _compile(workload, built, protocol, device, say, measured, stack)
        else:
            step = step_of(built, backend_of(workload).apply(built.module))
        _window(workload, protocol, device, step, say, measured)
        if device == "cuda":
            measured.fields["peak_memory_bytes"] = torch.cuda.max_memory_allocated() - held_bytes
        _unprofiled(workload, built, device, step, say, measured)
        rows, notes = compiling.in_fresh_processes(
            workload,
            protocol,
            lambda index: say(f"Compiling in fresh process {index + 1} of {protocol.fresh_process_compiles}"),
        )
        measured.compiles += rows
        measured.notes += notes
        if device == "cuda" and not protocol.light:
            # Last, for it heats the card up: what came after it would be measured at lower clocks.
            say("Repeating steps for over a second, reading the clocks")
            measured.fields["load"] = timing.load(step)
    say("Packing the run")


def _compile(
    workload: Workload,
    built: Built,
    protocol: Protocol,
    device: str,
    say: Callable[[str], None],
    measured: Measured,
    stack: contextlib.ExitStack,
) -> timing.Step:
    """Cold compiles until enough of them were not the first of this process; the last one is measured in full."""
    for index in range(protocol.cold_compiles - 1):
        say(f"Cold compile {index + 1} of {protocol.cold_compiles}, and what its kernels take")
        measured.compiles.append(compiling.profiled_compile(workload, built, device, protocol))
        if measured.compiles[-1].process == "first":
            measured.compiles.append(compiling.profiled_compile(workload, built, device, protocol))
    say(f"Cold compile {protocol.cold_compiles} of {protocol.cold_compiles}, the one that is shown")
    stack.enter_context(torch_internals.cold())
    step, row, seen = compiling.cold_compile(workload, built, device)
    measured.compiles.append(replace(row, shown=True))
    measured.code = seen.code
    measured.fields["sources"] = tuple(seen.sources)
    return step


def _window(
    workload: Workload,
    protocol: Protocol,
    device: str,
    step: timing.Step,
    say: Callable[[str], None],
    measured: Measured,
) -> None:
    if device == "cuda":
        say("Waiting until nothing holds the clocks down")
        gpu.wait_for_clocks()
    say(f"Warming up, then profiling {protocol.steps} steps")
    if device == "cuda":
        torch.cuda.reset_peak_memory_stats()
    timing.warm_up(step, device, protocol.warmup_calls)
    window = timing.settled_window(step, device, workload.label, protocol)
    if backend_of(workload).compiles:
        compiling.check_compiled(window.tables)
    measured.trace = window.trace
    measured.fields |= {
        "profile_attempts": window.attempts,
        "settled_why": window.why,
        "window_clocks": window.clocks,
        "other_processes": gpu.other_processes() if device == "cuda" else None,
    }
    if measured.compiles:
        measured.compiles[-1] = compiling.with_true_times(measured.compiles[-1], window.tables)


def _unprofiled(
    workload: Workload,
    built: Built,
    device: str,
    step: timing.Step,
    say: Callable[[str], None],
    measured: Measured,
) -> None:
    say("Timing steps without the profiler")
    measured.fields["step_us"], measured.fields["step_clocks"] = timing.step_times(step, device)
    if backend_of(workload).replays_graphs:
        measured.fields["graph_replay_why"] = "This backend launches its steps as CUDA graphs by itself."
    else:
        if device == "cuda":
            say("Replaying as a CUDA graph")
        measured.fields["graph_replay_us"], measured.fields["graph_replay_why"] = timing.graph_replay(step, device)
    say("Comparing with eager fp32")
    try:
        measured.fields["errors"] = numeric_errors(workload, built, step, device)
    except torch.OutOfMemoryError:
        measured.notes.append("The fp32 reference did not fit into memory, so the numeric error is unknown.")


def _release(workload: Workload, device: str, *, context_lost: bool) -> None:
    """Gives back what the run held, so that the next one starts from an empty device."""
    if backend_of(workload).compiles:  # elsewhere it would only import Dynamo, which takes seconds
        torch.compiler.reset()
    gc.collect()
    gc.freeze()  # what is left was imported or is cached: the next collection need not walk it, which takes half a second
    if not context_lost:
        _empty(device)


def _empty(device: str) -> None:
    """An empty device, so that a run's memory is its own: nothing cached, and no workspaces of earlier matrix products."""
    if device == "cuda":
        torch_internals.clear_workspaces()
        torch.cuda.empty_cache()
