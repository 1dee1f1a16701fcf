"""Which workloads the project ships recordings of: the article's scripts, on every backend that applies."""

from __future__ import annotations

from core.backends import BACKENDS
from core.workload import (
    PASSES,
    STEPS_ARTICLE,
    STEPS_DEFAULT,
    Workload,
    applies,
    from_preset,
    layer_of,
    presets,
    with_changes,
)

#: Compiles in processes of their own, beside those in the warm worker: on request, and in shipped recordings.
FRESH_PROCESS_COMPILES = 3


def fresh_process_compiles(workload: Workload) -> int:
    """How many a shipped recording holds: the article's three steps show its profile, and repeat none of the compiles."""
    return FRESH_PROCESS_COMPILES if workload.steps == STEPS_DEFAULT else 0


def shipped_workloads() -> tuple[Workload, ...]:
    """Each preset's sizes on each backend, forward and forward + backward; and with the article's three steps."""
    found: dict[Workload, None] = {}
    for _, preset in presets():
        base = from_preset(preset.name)
        for backend in BACKENDS:
            if not applies(backend, layer_of(base)):
                continue
            for passes in PASSES:
                found[with_changes(base, backend=backend.name, passes=passes)] = None
            found[with_changes(base, backend=backend.name, steps=STEPS_ARTICLE)] = None
    return tuple(found)
