"""`python -m core.bench.series`: the process that a series of a sweep owns. Orders on stdin, run files on stdout.

What torch.compile made of earlier calls lives in a process. So one process measures all points of a series in order,
nothing else compiles in it, and one that has to be started anew first repeats the finished calls, unmeasured.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import json
import os
import select
import shutil
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from dataclasses import replace

import torch

from core.analysis.ledger import Call, DimName
from core.bench import failures, gpu, machine, points, torch_internals
from core.bench.build import Built, build, step_of
from core.bench.dims import dims_of
from core.bench.jits import JitWatch
from core.bench.packing import Measured, packed
from core.bench.series_host import ERROR, HOST, PROGRESS, RESULT, SCRATCH, read_frame, write_frame
from core.bench.timing import Step
from core.estimate import Rates, check_fits, estimate
from core.store.manifest import Failure, Protocol
from core.store.point import Point, begun
from core.sweep import Sweep, Task, plan, workload_at
from core.sweep_order import PointOrder, decode, fingerprint
from core.workload import Workload, WorkloadError, backend_of

Report = Callable[[str], None]
_WARMUP_CALLS = 3
#: Without an order for this long the process ends, and the device is free of it: the sweep may have been cancelled.
_IDLE_S = 300.0
_PR_SET_PDEATHSIG = 1


class LedgerError(RuntimeError):
    """A process that was started anew did not compile what its ledger says; the text is one sentence."""


class Life:
    """One process's life with a sweep: the callable of each backend, and what it compiled so far."""

    def __init__(self, sweep: Sweep, process: str, *, ends_process: bool = False) -> None:
        """`ends_process` says that the process ends after the last task, and gives the device back then."""
        self._ends_process = ends_process
        self.sweep = sweep
        self.process = process
        self.device = machine.torch_device()
        self.jits = JitWatch()
        self.performed: list[int] = []
        self._limit_hit = False
        self._best_mhz = 0
        self._callable: tuple[torch.nn.Module, Callable[..., object]] | None = None
        self._weights: dict[str, torch.Size] = {}
        self._graphs: Callable[[], int | None] = lambda: 0
        self._dims: dict[str, tuple[DimName, ...]] = {}
        self._tasks = [task for task in plan(sweep) if task.process == process]
        self._compiles = any(backend_of(self._workload(task)).compiles for task in self._tasks)

    @contextlib.contextmanager
    def open(self) -> Iterator[None]:
        """Caches and hooks for as long as the process lives."""
        with contextlib.ExitStack() as stack:
            if self.sweep.mode == "shared":
                stack.enter_context(_own_caches())
            stack.enter_context(self.jits.open())
            if self._compiles:
                torch_internals.keep_all_metrics()
                stack.enter_context(torch_internals.recompile_limit(self.sweep.recompile_limit))
                stack.enter_context(torch_internals.compiling_in_process())
                self._graphs = stack.enter_context(torch_internals.counting_cuda_graphs())
            # Before the device is taken: it imports what the backends need, which takes seconds.
            for task in self._tasks:
                self._dims_of(self._workload(task))
            if self.sweep.cache == "warm":
                self._fill_caches()
            yield

    def perform(self, order: PointOrder, report: Report) -> bytes:
        """Measures the point; the run file, also where the point failed. Raises LedgerError."""
        with gpu.exclusive(lambda: report("waiting for another run on this device")):
            replayed = 0 if self.performed else self._replay(order, report)
            data = self._measured(order, replayed, report)
            if self._ends_process and order.task == self._tasks[-1]:
                gpu.give_back()
        self.performed.append(order.task.order)
        return data

    def _workload(self, task: Task) -> Workload:
        return workload_at(self.sweep, task.backend, task.index)

    def _fill_caches(self) -> None:
        """Walks through the list once, so that the disk caches hold all of it, and forgets it in memory."""
        with gpu.exclusive(lambda: None):
            for task in self._tasks:
                with contextlib.suppress(Exception):  # it will fail again when it is measured, and be told there
                    self._check_memory(self._workload(task))
                    self._called(task, cold=False)
            self._forget()

    def _forget(self) -> None:
        """As a new process would be: nothing compiled in memory."""
        self._callable, self._weights, self._limit_hit = None, {}, False
        if self._compiles:  # elsewhere it would only import Dynamo, which takes seconds
            torch.compiler.reset()
        if (
            self.sweep.kind != "map"
        ):  # a map draws new compiles where there is something to draw: Triton's JIT tunes nothing
            self.jits.forget()
        self._collect()

    def _collect(self) -> None:
        gc.collect()
        gc.freeze()  # what is left was imported or lives on: the next collection need not walk it
        if self.device == "cuda":
            torch.cuda.empty_cache()

    def _replay(self, order: PointOrder, report: Report) -> int:
        """Repeats the finished calls of a series that lives through its list; how many."""
        if self.sweep.mode != "shared":
            return 0
        tasks = {task.order: task for task in self._tasks}
        for number, done in enumerate(order.done, 1):
            if done.fingerprint is None:
                continue  # it failed before it was called, so it compiled nothing; a size that did not fit would not fit now
            report(f"repeating finished call {number} of {len(order.done)}, unmeasured")
            try:
                call = self._called(tasks[done.order], cold=False)[0]
            except points.FirstCallError as failed:  # as it did the first time
                call = failed.call
                self._drop_weights()
            except torch.OutOfMemoryError as error:
                raise LedgerError(
                    f"The process was started anew, and repeating call {number} of {len(order.done)} ran out of memory, though "
                    "it fitted before; make room on the device and resume the sweep."
                ) from error
            if fingerprint(call) != done.fingerprint:
                raise LedgerError(
                    f"The process was started anew, and call {number} of {len(order.done)} compiled something else than "
                    "before, so what follows would not belong to this sweep; delete the sweep and run it again."
                )
        return len(order.done)

    def _called(self, task: Task, *, cold: bool) -> tuple[Call, Measured, Built, Step]:
        """Builds the point's step and calls it until nothing of it is new any more; the first call is watched.

        Raises points.FirstCallError, and whatever building raises.
        """
        workload = self._workload(task)
        built, call = self._built(workload)
        self._mark(workload, built)
        step = step_of(built, call)
        if self.device == "cuda":
            torch.cuda.reset_peak_memory_stats()
        graphs = self._graphs()
        dims = self._dims_of(workload)
        told, measured = points.first_call(workload, step, self.device, dims, self.jits, cold=cold)
        if told.limit is not None:
            self._limit_hit = True
        try:
            later_s = tuple(points.timed_call(step, self.device) for _ in range(_WARMUP_CALLS - 1))
        except Exception as error:
            raise points.FirstCallError(told, measured) from error  # what the first one compiled lives on
        after = self._graphs()
        recorded = None if graphs is None or after is None else after - graphs
        told = replace(told, cuda_graphs=recorded, graph_calls_s=later_s if recorded else ())
        return told, measured, built, step

    def _built(self, workload: Workload) -> tuple[Built, Callable[..., object]]:
        """The layer at these sizes and its callable: the one that lives through the list, its weights exchanged where their
        shapes change, or a new one."""
        built, apply = build(workload, self.device), backend_of(workload).apply
        if self.sweep.mode != "shared":
            return built, apply(built.module)
        shapes = {name: parameter.shape for name, parameter in built.module.named_parameters()}
        if self._callable is None:
            self._callable = (built.module, apply(built.module))
        elif shapes != self._weights:
            # The same object with other weights, as Dynamo meets it where one class serves layers of several widths.
            self._callable[0].__dict__.update(built.module.__dict__)
        self._weights = shapes
        module, call = self._callable
        return replace(built, module=module), call

    def _drop_weights(self) -> None:
        """Gives back what a failed point holds; the next one brings weights of its own."""
        if self._callable is not None:
            self._callable[0].to("meta")
            self._callable[0].zero_grad(set_to_none=True)
        self._weights = {}
        self._collect()

    def _dims_of(self, workload: Workload) -> tuple[DimName, ...]:
        if workload.backend not in self._dims:
            self._dims[workload.backend] = dims_of(workload)
        return self._dims[workload.backend]

    def _marked(self, workload: Workload) -> tuple[DimName, ...]:
        """The input dimensions to mark: those that the axis itself fills. Raises WorkloadError where it fills none."""
        if not (self.sweep.mark_dynamic and backend_of(workload).compiles):
            return ()
        found = tuple(
            one for one in self._dims_of(workload) if one.size in self.sweep.axes and not one.tensor.startswith("self")
        )
        if not found:
            axes = " and ".join(self.sweep.axes)
            raise WorkloadError(
                f"No input dimension is {axes} alone, so none can be marked dynamic; sweep another size or turn "
                "mark_dynamic off."
            )
        return found

    def _mark(self, workload: Workload, built: Built) -> None:
        arguments = dict.fromkeys(one.tensor for one in self._dims_of(workload) if not one.tensor.startswith("self"))
        inputs = dict(zip(arguments, built.inputs, strict=False))
        for one in self._marked(workload):
            torch_internals.mark_dynamic(inputs[one.tensor], one.dim)

    def _measured(self, order: PointOrder, replayed: int, report: Report) -> bytes:
        sweep, task = self.sweep, order.task
        workload = self._workload(task)
        cold = sweep.cache == "cold"
        protocol = Protocol(steps=workload.steps, cold_compiles=int(cold and backend_of(workload).compiles), light=True)
        measured, failure = Measured(), None
        point = replace(begun(order.sweep_id, sweep, task), dims=self._dims_of(workload), replayed=replayed)
        try:
            with contextlib.ExitStack() as stack:
                if sweep.mode == "isolated" and cold:
                    stack.enter_context(_own_caches())
                self._check_memory(workload)
                point, measured = self._point(task, workload, protocol, point, report, cold=cold)
        except _PointFailedError as failed:
            point, measured, failure = failed.point, failed.measured, failed.failure
        except Exception as error:  # noqa: BLE001  # whatever torch raises is this point's result
            failure = self._described(error, workload)
        if failure is not None and failure.kind != "cuda_error":
            self._drop_weights()
        if sweep.mode == "isolated" and not (failure and failure.kind == "cuda_error"):
            self._forget()
        run_id = f"{order.sweep_id}-{task.order:04d}"
        return packed(workload, protocol, measured, failure, run_id=run_id, point=point)

    def _point(
        self, task: Task, workload: Workload, protocol: Protocol, point: Point, report: Report, *, cold: bool
    ) -> tuple[Point, Measured]:
        limit_before = self._limit_hit
        report("calling it for the first time")
        point = replace(point, marked=self._marked(workload))
        try:
            call, measured, built, step = self._called(task, cold=cold)
        except points.FirstCallError as failed:
            assert isinstance(failed.__cause__, Exception)
            failure = self._described(failed.__cause__, workload)
            raise _PointFailedError(replace(point, call=failed.call), failed.measured, failure) from failed
        measured.fields["predicted"] = estimate(workload)
        point = replace(point, call=call)
        if self.device == "cuda":  # what the tuner copied is no step's
            point = replace(point, first_call_memory_bytes=torch.cuda.max_memory_allocated())
            torch.cuda.reset_peak_memory_stats()
        try:
            tables = points.window(workload, step, self.device, protocol, measured, self._best_mhz, report)
            self._best_mhz = max(self._best_mhz, points.highest_mhz(measured))
            served = points.served_by(tables)
            kernels, kernel_time_us, role_us = points.kernels_of(workload, tables, self.device)
            point = replace(
                point,
                call=points.with_service(call, workload, served, limit_before=limit_before),
                kernels=kernels,
                kernel_time_us=kernel_time_us,
                role_us=role_us,
            )
            report("timing steps without the profiler")
            if self.device == "cuda":
                measured.fields["peak_memory_bytes"] = torch.cuda.max_memory_allocated()
            points.unprofiled(workload, built, step, self.device, measured, compare=task.round == 0)
        except Exception as error:
            raise _PointFailedError(point, measured, self._described(error, workload)) from error
        return point, measured

    def _check_memory(self, workload: Workload) -> None:
        free = Rates({}, 0.0, 0.0, machine.free_memory_bytes(self.device))
        check_fits(workload, free, "this GPU" if self.device == "cuda" else "this machine")

    def _described(self, error: Exception, workload: Workload) -> Failure:
        if isinstance(error, WorkloadError):
            return Failure("cannot_be_measured", str(error))
        return points.fixed_dim(error, self._dims_of(workload)) or failures.describe(error)


class _PointFailedError(Exception):
    """A point that failed after its first call: what is known of it, and why."""

    def __init__(self, point: Point, measured: Measured, failure: Failure) -> None:
        super().__init__(failure.sentence)
        self.point, self.measured, self.failure = point, measured, failure


@contextlib.contextmanager
def _own_caches() -> Iterator[None]:
    """Empty disk caches of Inductor and Triton, gone afterwards."""
    names = ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR")
    before = {name: os.environ.get(name) for name in names}
    folder = tempfile.mkdtemp(prefix="fusionscope-caches-", dir=os.environ.get(SCRATCH))
    os.environ |= {name: f"{folder}/{name.lower()}" for name in names}
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        shutil.rmtree(folder, ignore_errors=True)


def main() -> None:
    """Performs orders until stdin closes, or nothing is asked for a while."""
    if sys.platform == "linux":  # left alone, this process would measure beside whatever comes next
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != int(os.environ.get(HOST, os.getppid())):
            return  # its host died while torch was being imported
    orders = os.fdopen(os.dup(sys.stdin.fileno()), "rb", buffering=0)
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what compilers print must not land between the answers

    def report(text: str) -> None:
        write_frame(answers, PROGRESS, text.encode())

    with contextlib.ExitStack() as stack:
        life: Life | None = None
        while select.select([orders], [], [], _IDLE_S)[0]:
            try:
                _, payload = read_frame(orders)
            except EOFError:
                return
            order = decode(payload)
            if life is None:
                life = Life(order.sweep, order.task.process, ends_process=True)
                stack.enter_context(life.open())
            try:
                write_frame(answers, RESULT, life.perform(order, report))
            except LedgerError as error:
                told = {"kind": "ledger", "sentence": str(error), "log": traceback.format_exc()}
                write_frame(answers, ERROR, json.dumps(told).encode())
                return


if __name__ == "__main__":
    main()
