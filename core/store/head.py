"""The head of a run: what a list shows and a search needs of its manifest, small enough to keep for thousands of runs."""

from __future__ import annotations

import math
from dataclasses import dataclass

from core.analysis.spread import Spread, spread
from core.store.manifest import Device, Manifest, Samples
from core.workload import Workload


@dataclass(frozen=True)
class Head:
    """One run in a list. None means "unknown", as in the manifest it is derived from.

    `step_us` is the unprofiled step, `step_how` with what clock it was taken. `worst_error` is the largest
    ‖out − ref‖ / ‖ref‖ of the tensors that were compared; `finite` is False where one of them held NaN or infinity,
    None where nothing was compared. `seconds` is how long the whole run took; `failure` is its sentence; `sweep` is the id
    of the sweep that the run is a point of.
    """

    id: str
    workload: Workload
    created: str
    status: str
    throttled: bool
    answers: bool
    protocol_version: int
    device: Device
    versions: dict[str, str | None]
    step_us: Spread | None
    step_how: str | None
    graph_replay_us: Spread | None
    peak_memory_bytes: int | None
    worst_error: float | None
    finite: bool | None
    n_compiles: int
    seconds: float
    failure: str | None
    sweep: str | None = None

    @property
    def error(self) -> float | None:
        """The largest relative error; infinite where a tensor was not finite, which no number is."""
        return float("inf") if self.finite is False else self.worst_error

    @property
    def state(self) -> str:
        """Status in one word: "ok", "throttled", "unsettled" or "failed"."""
        return "throttled" if self.status == "ok" and self.throttled else self.status


def head_of(manifest: Manifest) -> Head:
    """What a list shows of the run."""
    errors = [error.relative for error in manifest.errors if error.relative is not None]
    return Head(
        id=manifest.id,
        workload=manifest.workload,
        created=manifest.created,
        status=manifest.status,
        throttled=manifest.throttled,
        answers=manifest.answers,
        protocol_version=manifest.protocol.version,
        device=manifest.device,
        versions=manifest.versions,
        step_us=_spread(manifest.step_us),
        step_how=manifest.step_us.how if manifest.step_us else None,
        graph_replay_us=_spread(manifest.graph_replay_us),
        peak_memory_bytes=manifest.peak_memory_bytes,
        worst_error=max(errors, default=None),
        finite=all(error.finite for error in manifest.errors) if manifest.errors else None,
        n_compiles=len(manifest.compiles),
        seconds=manifest.seconds,
        failure=manifest.failure.sentence if manifest.failure else None,
        sweep=manifest.point.sweep if manifest.point else None,
    )


def _spread(samples: Samples | None) -> Spread | None:
    found = spread(samples.values) if samples else None
    # Values near the largest float overflow on the way; JSON, and so the index, has no infinity.
    return found if found is None or math.isfinite(found.p75 - found.p25) else None
