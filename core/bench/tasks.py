"""What the engine calls in the worker: bytes in, bytes out."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from core.bench import doctor
from core.bench.failures import describe
from core.bench.machine import look_over
from core.bench.run import run
from core.store import runfile
from core.store.manifest import Protocol
from core.workload import Workload

Report = Callable[[str, int, int], None]


class LookError(Exception):
    """Why this machine cannot be looked at, as the engine passes it on: a kind and a sentence."""

    def __init__(self, kind: str, sentence: str) -> None:
        super().__init__(sentence)
        self.kind, self.sentence = kind, sentence


class RunOrder(msgspec.Struct, frozen=True):
    """A workload and how it is to be measured."""

    workload: Workload
    protocol: Protocol


def run_workload(payload: bytes, report: Report) -> bytes:
    """Carries a RunOrder out; the run file. The worker is replaced afterwards where the CUDA context was lost."""
    order = msgspec.json.decode(payload, type=RunOrder)
    data = run(order.workload, order.protocol, report)
    failure = runfile.read_manifest(data).failure
    if failure is not None and failure.kind == "cuda_error":
        from core.engine.task import LastResult  # the engine's own room is only there when the engine calls

        return LastResult(data)
    return data


def look(payload: bytes, report: Report) -> bytes:
    """The Machine as JSON; the first call also warms the worker up."""
    report("Starting the worker: importing torch", 0, 1)
    try:
        return msgspec.json.encode(look_over())
    except Exception as error:
        known = describe(error)
        raise LookError(known.kind, f"Live runs are not possible for now. {known.sentence}") from error


def examine(payload: bytes, report: Report) -> bytes:
    """The doctor's Examination as JSON. The worker is replaced afterwards where the CUDA context was lost."""
    found = doctor.examine(report, where="the worker")
    data = msgspec.json.encode(found)
    if any(check.failure == "cuda_error" for check in found.checks):
        from core.engine.task import LastResult  # the engine's own room is only there when the engine calls

        return LastResult(data)
    return data
