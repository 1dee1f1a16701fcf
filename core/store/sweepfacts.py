"""From the manifests of a sweep's points to what the analysis reads: a series a backend."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from core.analysis.ledger import PointFacts, Products, SeriesFacts
from core.analysis.numerics import Difference, mismatch
from core.analysis.stack import Setting
from core.store.head import head_of
from core.store.manifest import PROTOCOL, THROTTLE_MASK, Manifest, Samples, throttle_words
from core.store.point import Point
from core.store.spans import Span, overlap, span_of
from core.store.sweepentry import SweepEntry
from core.sweep import Sweep, workload_at
from core.workload import backend_of, layer_of

_GENERATED = "triton_"
#: Fewer steps at an end of a burst tell the first step's hiccup.
_FIFTH_MIN = 3


def facts(entry: SweepEntry, manifests: Sequence[Manifest], beside: Sequence[Span] = ()) -> tuple[SeriesFacts, ...]:
    """The sweep's points as the analysis reads them, a series a backend, in the sweep's order. `beside` are the spans, in
    unix seconds, over which other sweeps were measured on the same machine."""
    sweep = entry.head.sweep
    found: dict[str, list[PointFacts]] = {name: [] for name in sweep.backends}
    for manifest in manifests:
        found[manifest.workload.backend].append(_point_facts(sweep, manifest, beside))
    series = []
    for name, points in found.items():
        backend = backend_of(workload_at(sweep, name, 0))
        ordered = tuple(sorted(points, key=lambda one: (one.index, one.round)))
        series.append(SeriesFacts(name, backend.title, backend.compiles, backend.fuses, backend.dynamic, ordered))
    return tuple(series)


def _point_facts(sweep: Sweep, manifest: Manifest, beside: Sequence[Span]) -> PointFacts:
    point, head = manifest.point, head_of(manifest)
    assert point is not None, "a point of a sweep"
    setting = _setting(manifest)
    own = span_of(manifest, manifest)
    # What went with its process, and what was measured in another one afterwards, no later point of the list lived with.
    lost = manifest.failure is not None and manifest.failure.ended_process
    return PointFacts(
        run_id=manifest.id,
        series=manifest.workload.backend,
        index=point.index,
        round=point.round,
        order=point.order,
        values=point.values,
        count=sweep.counts[point.index] if sweep.counts else 1,
        on_gpu=setting.on_gpu,
        device=setting.device,
        call=None if lost or point.apart else point.call,
        kernels=point.kernels,
        kernel_time_us=point.kernel_time_us,
        role_us=point.role_us,
        step_us=head.step_us,
        step_how=head.step_how,
        peak_memory_bytes=manifest.peak_memory_bytes,
        first_call_memory_bytes=point.first_call_memory_bytes,
        clocks_mhz=setting.clocks_mhz,
        step_clocks_mhz=tuple(sample.sm_mhz for sample in manifest.step_clocks if sample.sm_mhz is not None),
        step_ends_us=_ends(manifest.step_us),
        doubt=setting.doubt,
        worst_error=head.error,
        failure=head.failure,
        failure_kind=manifest.failure.kind if manifest.failure else None,
        dims=point.dims,
        beside_others=any(overlap(own, other) for other in beside),
        measured_later=point.apart,
        products=_products(point, [role.name for role in layer_of(manifest.workload).roles if role.matmul])
        if setting.on_gpu  # on a CPU what else runs there differs more than they do
        else None,
    )


def _ends(steps: Samples | None) -> tuple[float, float] | None:
    """The medians of the first and the last fifth of the steps, in µs."""
    count = len(steps.values) // 5 if steps is not None else 0
    if steps is None or count < _FIFTH_MIN:
        return None
    return median(steps.values[:count]), median(steps.values[-count:])


def _products(point: Point, names: Sequence[str]) -> Products | None:
    times = [point.role_us.get(name) for name in names]
    known = [
        (name, time.median)
        for name, time in zip(names, times, strict=True)
        if time is not None and time.median > 0 and not time.is_wide
    ]
    if not known or len(known) < len(times):
        return None
    kernels = sorted({(kernel.role, kernel.name) for kernel in point.kernels if kernel.role in names})
    # A library's kernel is what its name says; a generated one keeps its name whatever configuration the tuner chose.
    named = not any(name.startswith(_GENERATED) for _, name in kernels)
    return Products(tuple(kernels) if named else (), tuple(known))


def _setting(manifest: Manifest) -> Setting:
    """What the point's times stand on; its doubt is that of a run in a stack."""
    reasons = 0
    for sample in manifest.window_clocks:
        reasons |= (sample.throttle_reasons or 0) & THROTTLE_MASK
    differences = [Difference(error.of, error.relative, error.finite) for error in manifest.errors]
    return Setting(
        device=manifest.device.name,
        versions=", ".join(f"{name} {version}" for name, version in manifest.versions.items()),
        on_gpu=manifest.device.kind == "gpu",
        clocks_mhz=tuple(sample.sm_mhz for sample in manifest.window_clocks if sample.sm_mhz is not None),
        held_down=f"held down by {', '.join(throttle_words(reasons))}" if manifest.throttled else None,
        is_settled=manifest.status != "unsettled",
        is_right=mismatch(differences, manifest.workload.dtype) is None,
        is_of_protocol=manifest.protocol.version == PROTOCOL,
    )
