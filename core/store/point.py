"""A point of a sweep, as its manifest keeps it: where it stands in the sweep, and its row of the ledger."""

from __future__ import annotations

from dataclasses import dataclass

from core.analysis.ledger import Call, DimName, PointKernel
from core.analysis.spread import Spread
from core.sweep import Sweep, Task


@dataclass(frozen=True)
class Point:
    """Which point of which sweep a run is. `order` is its place in the plan, `index` that in the list of sizes, `process`
    the name of the process that measured it, with `replayed` finished calls repeated before it, unmeasured, where that
    process had to be started anew. `apart` marks one that was measured again after later points of its list, whose process
    had never finished this call. `marked` are the dimensions that were marked dynamic.
    `first_call_memory_bytes` is the peak of its first calls, compiling included; where it is None, the run's peak memory holds
    them, too. `role_us` is the time of each of the
    layer's roles a step."""

    sweep: str
    order: int
    process: str
    index: int
    round: int
    values: tuple[int, ...]
    dims: tuple[DimName, ...]
    call: Call | None
    kernels: tuple[PointKernel, ...]
    kernel_time_us: Spread | None
    role_us: dict[str, Spread]
    marked: tuple[DimName, ...] = ()
    replayed: int = 0
    first_call_memory_bytes: int | None = None
    apart: bool = False


def begun(sweep_id: str, sweep: Sweep, task: Task) -> Point:
    """The point of a task of which nothing is known yet."""
    return Point(
        sweep=sweep_id,
        order=task.order,
        process=task.process,
        index=task.index,
        round=task.round,
        values=sweep.points[task.index],
        dims=(),
        call=None,
        kernels=(),
        kernel_time_us=None,
        role_us={},
    )
