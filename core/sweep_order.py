"""The order to measure one point of a sweep, as it crosses to the worker, and what its process must repeat before it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from core.analysis.ledger import Attempt, Call
from core.sweep import Sweep, Task, plan


@dataclass(frozen=True)
class Done:
    """A finished task, by its place in the plan, and the fingerprint of what its call compiled; None where it failed before
    it was called."""

    order: int
    fingerprint: str | None


@dataclass(frozen=True)
class PointOrder:
    """Measure `task` of a sweep. `done` are the finished tasks of the same process before it, in the plan's order: a
    process that has to be started anew repeats them, unmeasured, and must compile the same again."""

    sweep_id: str
    sweep: Sweep
    task: Task
    done: tuple[Done, ...] = ()


def fingerprint(call: Call) -> str:
    """What a call compiled, and with what outcome, without times: "0/1 ok;0/1 backward ok;0/2 limit"; "" for a reuse."""
    return ";".join(_outcome(one) for one in call.attempts)


def _of(call: Call | None) -> str | None:
    return None if call is None else fingerprint(call)


def _outcome(attempt: Attempt) -> str:
    outcome = "ok" if attempt.ok else "limit" if attempt.limit is not None else "failed"
    return f"{attempt.entry}{' backward' if attempt.backward else ''} {outcome}"


def point_order(sweep_id: str, sweep: Sweep, task: Task, calls: Mapping[int, Call | None]) -> PointOrder:
    """The order for a task, where `calls` are those of the finished tasks, by their place in the plan."""
    before = (one for one in plan(sweep) if one.process == task.process and one.order < task.order)
    done = tuple(Done(one.order, _of(calls[one.order])) for one in before if one.order in calls)
    return PointOrder(sweep_id, sweep, task, done)


def encode(order: PointOrder) -> bytes:
    """The order as JSON."""
    return msgspec.json.encode(order)


def decode(payload: bytes) -> PointOrder:
    """The order from JSON. Raises msgspec.MsgspecError for what is none: both sides are of one version."""
    return msgspec.json.decode(payload, type=PointOrder)


def point_id(sweep_id: str, order: int) -> str:
    """The run id of a point: the sweep's id and the point's place in the plan."""
    return f"{sweep_id}-{order:04d}"
