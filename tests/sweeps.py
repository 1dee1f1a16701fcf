"""Small whole sweeps built by hand, for tests of what reads them: calls that compile, recompile, reuse, hit the limit, fail."""

import dataclasses

from core.analysis.ledger import RECOMPILE_LIMIT, Attempt, Call, DimName, GuardMiss, Jit, PointKernel
from core.analysis.spread import spread
from core.store import sweepfile
from core.store.manifest import ClockSample, Failure, Protocol, Samples
from core.store.point import Point
from core.store.runfile import pack
from core.store.sweepfile import SweepHead
from core.sweep import make_sweep, plan, workload_at
from core.sweep_order import point_id
from core.workload import backend_of
from tests.runs import H200, manifest, one_kernel_a_step, trace_bytes

BATCHES = {
    "layer": "geglu_mlp",
    "axis": "batch",
    "values": "4,8,16,32",
    "backends": "eager,compile,compile_static,liger",
    "limit": "2",
}
MAP = {
    "kind": "map",
    "layer": "geglu_mlp",
    "axis": "batch",
    "values": "8,64",
    "axis2": "intermediate",
    "values2": "2048,11008",
    "backends": "eager,compile,liger",
}
TRAFFIC = {
    "kind": "traffic",
    "layer": "geglu_mlp",
    "rows": "8,128,120;16,128,60;8,256,4000",
    "backends": "eager,compile,liger",
}
DIMS = (DimName("x", 0, "batch"), DimName("x", 1, "seq"), DimName("x", 2, "hidden"))
CODE = "# the code of entry {entry}\n@triton.jit\ndef triton_poi_fused_gelu_mul_0(in_ptr0):\n    XBLOCK = {size}\n"
_ACTIVATION_US = {"eager": 66.0, "liger": 44.0}


def write(folder, sweep_id, fields, *, leave_out=(), strange="", created="2026-01-02T03:04:05+00:00", **changes):
    """A sweep's folder under `folder`, without the points whose places in the plan are in `leave_out`; the sweep's id.

    `strange` is a stranger's text put wherever a sweep holds words. The static series hits its limit, and the last point of
    eager runs out of memory.
    """
    sweep = make_sweep(fields)
    own = folder / sweep_id
    own.mkdir(parents=True)
    (own / sweepfile.HEAD).write_bytes(sweepfile.encode(SweepHead(sweep_id, sweep, created)))
    for task in plan(sweep):
        if task.order not in leave_out:
            (own / sweepfile.name_of(task.order)).write_bytes(point_file(sweep_id, sweep, task, strange, **changes))
    return sweep_id


def point_file(sweep_id, sweep, task, strange="", **changes):
    """The run file of one point."""
    workload = workload_at(sweep, task.backend, task.index)
    sizes = dict(workload.sizes)
    is_out_of_memory = sweep.kind == "sweep" and task.backend == "eager" and task.index == len(sweep.points) - 1
    call, code = _call(sweep, task, strange)
    scale = sizes["batch"] * sizes["seq"] * sizes["intermediate"] / (64 * 128 * 3072)
    kernels = () if is_out_of_memory else _kernels(task, scale, strange)
    total = sum(one.time_us.median for one in kernels)
    point = Point(
        sweep=sweep_id, order=task.order, process=task.process, index=task.index, round=task.round,
        values=sweep.points[task.index], dims=DIMS, call=None if is_out_of_memory else call, kernels=kernels,
        kernel_time_us=_around(total) if kernels else None,
        role_us={one.role: one.time_us for one in kernels},
    )  # fmt: skip
    clock = ClockSample(0.0, 1980, 2619, 300.0, 50, 0)
    step = tuple(total + (90 if task.backend == "liger" else 30) + jitter for jitter in (0.0, 1.0, 2.0, 3.0))
    one = manifest(
        point_id(sweep_id, task.order), workload=workload, protocol=Protocol(steps=workload.steps, light=True),
        device=dataclasses.replace(H200, name=H200.name + strange), versions={"torch": "2.11.0" + strange, "python": "3.12.3"},
        window_clocks=(clock, clock), peak_memory_bytes=int(4e8 * scale), point=point,
        step_us=None if is_out_of_memory else Samples("us", "device events", step),
        **({"status": "failed", "failure": Failure("out of memory", f"The GPU's memory did not suffice{strange}.", "log")}
           if is_out_of_memory else {}), **changes,
    )  # fmt: skip
    return pack(one, None if is_out_of_memory else trace_bytes(one_kernel_a_step()), code)


def _kernels(task, scale, strange):
    activation = _ACTIVATION_US.get(task.backend, 37.0 + 2 * task.round) * scale
    parts = (("gate", "gemm", 56.3), ("up", "gemm", 56.3), ("down", "gemm", 51.9))
    products = [_kernel(f"nvjet_{role}_TNT{strange}", role, family, us * scale) for role, family, us in parts]
    family = {"eager": "elementwise", "liger": "liger"}.get(task.backend, "fused")
    return (*products, _kernel(f"{family}_gelu_mul{strange}", "activation", family, activation))


def _kernel(name, role, family, us):
    return PointKernel(name, role, family, "24576, 1, 1", "128, 1, 1", 1.0, _around(us))


def _around(us):
    return spread([us * 0.995, us, us * 1.005])


def _call(sweep, task, strange):
    fresh = sweep.mode == "isolated" or task.index == 0
    if task.backend == "liger":
        jits = (Jit("_geglu_tanh_forward_kernel" + strange, {"n_cols": "3072"}, 0.17),) if fresh else ()
        return Call(0.2 if jits else 0.001, served_by=(), graph_breaks=(), cuda_graphs=0, jits=jits), {}
    if not backend_of(workload_at(sweep, task.backend, task.index)).compiles:
        return Call(0.001, served_by=(), graph_breaks=(), cuda_graphs=0, jits=()), {}
    limit = sweep.recompile_limit if task.backend == "compile_static" and not fresh else None
    if not fresh and limit is None and task.index > 1:
        return Call(0.002, served_by=("0/1",), graph_breaks=(), cuda_graphs=0, jits=()), {}
    entry = "0/0" if fresh else f"0/{task.index}"
    size = sweep.points[task.index][0]
    words = f"tensor 'x' size mismatch at index 0. expected {sweep.points[task.index - 1][0]}, actual {size}{strange}"
    misses = () if fresh else (GuardMiss(f"0/{task.index - 1}", words),)
    if limit is not None and task.index >= limit:
        gave_up = Attempt(
            entry, False, False, misses, failed="Dynamo recompile limit exceeded" + strange, limit=RECOMPILE_LIMIT
        )
        return Call(
            0.01, (gave_up,), (), ran_eager=True, limit=RECOMPILE_LIMIT, graph_breaks=(), cuda_graphs=0, jits=()
        ), {}
    attempt = Attempt(
        entry, False, True, misses, dynamic_dims=DIMS[:1] if not fresh and limit is None else (), guard_count=2,
        guards=(f"check_tensor(L['x'], size=[{size}, None])", "___check_type_id(L['self'])" + strange),
        stages_s={"dynamo": 0.2, "aot_autograd": 0.1, "inductor": 0.5, "kernel_compile": 0.3, "total": 0.9},
        disk_cache="miss", code=(f"graph_{entry.replace('/', '_')}.py",),
    )  # fmt: skip
    breaks = ("data-dependent branch" + strange,) if strange else ()
    call = Call(1.0, (attempt,), (entry,), graph_breaks=breaks, cuda_graphs=0, jits=())
    return call, {attempt.code[0]: CODE.format(entry=entry, size=size)}
