"""Workload: what to run, as a frozen value; its checks and its fields in a link. Pure."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from core.backends import BACKENDS, Backend
from core.layers import LAYERS, Cost, Layer, Preset

DTYPES: Mapping[str, int] = {"bf16": 2, "fp16": 2, "fp32": 4}
PASSES: Mapping[str, str] = {"fwd": "Forward", "fwd_bwd": "Forward + backward"}
STEPS_DEFAULT = 20
STEPS_ARTICLE = 3
STEPS_MAX = 200
SIZE_MAX = 1 << 24
#: Digits, or digits in groups of three; 1,5 is no whole number.
_WHOLE = re.compile(r"[+-]?(?:\d{1,39}|\d{1,3}(?:,\d{3})+)", re.ASCII)
SEED_MAX = (1 << 31) - 1

_LAYERS = {layer.name: layer for layer in LAYERS}
_BACKENDS = {backend.name: backend for backend in BACKENDS}


class WorkloadError(ValueError):
    """A pick that cannot be run. The text is one sentence that says what is wrong and what to do."""


@dataclass(frozen=True)
class Workload:
    """What to run. Build one with `make`; equal workloads have equal keys.

    `sizes` and `flags` are in the layer's own order.
    """

    layer: str
    sizes: tuple[tuple[str, int], ...]
    backend: str
    flags: tuple[tuple[str, bool], ...] = ()
    dtype: str = "bf16"
    passes: str = "fwd"
    steps: int = STEPS_DEFAULT
    seed: int = 0

    @property
    def key(self) -> str:
        """Twelve hex digits that name this workload in files and links."""
        canonical = json.dumps(to_fields(self), sort_keys=True)
        return hashlib.sha256(canonical.encode()).hexdigest()[:12]

    @property
    def title(self) -> str:
        """One line for people."""
        sizes = " × ".join(f"{name} {value:,}" for name, value in self.sizes)
        flags = "".join(f", {words}" for words in flag_words(self))
        passes = PASSES[self.passes].lower()
        return f"{layer_of(self).title}, {sizes}{flags}, {self.dtype}, {passes}, {backend_of(self).title}"

    @property
    def label(self) -> str:
        """The record_function label of a step, as the article's scripts name theirs."""
        return f"{backend_of(self).label_prefix}{layer_of(self).label}_{self.passes}"


def layer_of(workload: Workload) -> Layer:
    """The layer a workload names."""
    return _LAYERS[workload.layer]


def backend_of(workload: Workload) -> Backend:
    """The backend a workload names."""
    return _BACKENDS[workload.backend]


def applies(backend: Backend, layer: Layer) -> bool:
    """Whether the backend can carry the layer out: where it stands on a twin, the layer must have it."""
    return backend.twin is None or backend.twin in layer.twins


def presets() -> tuple[tuple[Layer, Preset], ...]:
    """Every preset with its layer, in registry order."""
    return tuple((layer, preset) for layer in LAYERS for preset in layer.presets)


def from_preset(name: str, **changes: Any) -> Workload:
    """The workload a preset names, with `changes` as for `make`.

    Raises WorkloadError for a name that no layer has.
    """
    for layer, preset in presets():
        if preset.name == name:
            fields: dict[str, Any] = {"layer": layer.name, "backend": preset.backend, **preset.sizes, **preset.flags}
            return make({**fields, **{key: value for key, value in changes.items() if value is not None}})
    known = ", ".join(preset.name for _, preset in presets())
    raise WorkloadError(f"There is no preset {name!r}; choose one of {known}.")


def make(fields: Mapping[str, Any]) -> Workload:
    """A checked workload from flat fields, as a link, a form or the command line gives them.

    Missing fields take their defaults. Raises WorkloadError, one sentence, for the first field that is wrong.
    """
    layer = _one_of("layer", fields.get("layer", LAYERS[0].name), _LAYERS)
    backend = _one_of("backend", fields.get("backend", BACKENDS[0].name), _BACKENDS)
    if not applies(backend, layer):
        raise WorkloadError(f"{layer.title} has no {backend.title} version; choose another backend.")
    known = field_names(layer)
    unknown = next((name for name in fields if name not in known), None)
    if unknown is not None:
        raise WorkloadError(
            f"{layer.title} on {backend.title} has no field {unknown[:40]!r}; it has {', '.join(known)}."
        )
    return Workload(
        layer=layer.name,
        sizes=tuple((s.name, whole(s.title, fields.get(s.name, s.default), 1, SIZE_MAX)) for s in layer.sizes),
        backend=backend.name,
        flags=tuple((f.name, _switch(f.title, fields.get(f.name, f.default))) for f in layer.flags),
        dtype=_one_of("dtype", fields.get("dtype", "bf16"), {name: name for name in DTYPES}),
        passes=_one_of("passes", fields.get("passes", "fwd"), {name: name for name in PASSES}),
        steps=whole("Steps", fields.get("steps", STEPS_DEFAULT), 1, STEPS_MAX),
        seed=whole("Seed", fields.get("seed", 0), 0, SEED_MAX),
    )


def field_names(layer: Layer) -> tuple[str, ...]:
    """The flat fields that `make` takes for this layer."""
    return (
        "layer",
        *(size.name for size in layer.sizes),
        *(flag.name for flag in layer.flags),
        *("backend", "dtype", "passes", "steps", "seed"),
    )


def to_fields(workload: Workload) -> dict[str, Any]:
    """The flat fields that `make` takes back; what a link carries."""
    return {
        "layer": workload.layer,
        **dict(workload.sizes),
        **dict(workload.flags),
        "backend": workload.backend,
        "dtype": workload.dtype,
        "passes": workload.passes,
        "steps": workload.steps,
        "seed": workload.seed,
    }


def with_changes(workload: Workload, **changes: Any) -> Workload:
    """The same workload with other fields, checked again; fields that the new layer or backend lacks fall away."""
    fields = {**to_fields(workload), **changes}
    layer = _one_of("layer", fields["layer"], _LAYERS)
    kept = {**dict.fromkeys(changes), **dict.fromkeys(field_names(layer))}
    return make({name: value for name, value in fields.items() if name in kept})


def whole(title: str, value: Any, low: int, high: int) -> int:
    """`value` as a whole number from `low` to `high`; WorkloadError says which field is wrong and what it may be."""
    text = str(value).strip()
    number = int(text.replace(",", "")) if _WHOLE.fullmatch(text) else None
    if number is None or isinstance(value, bool) or not low <= number <= high:
        shown = text if len(text) <= 24 else text[:21] + "..."
        raise WorkloadError(f"{title} must be a whole number from {low:,} to {high:,}; {shown!r} is not.")
    return number


def flag_words(workload: Workload) -> tuple[str, ...]:
    """ "with bias", "without bias": the flags as people say them."""
    titles = {flag.name: flag.title.lower() for flag in layer_of(workload).flags}
    return tuple(f"{'with' if on else 'without'} {titles[name]}" for name, on in workload.flags)


def cost_of(workload: Workload) -> Cost:
    """FLOPs and bytes of one forward call."""
    return layer_of(workload).cost(dict(workload.sizes), dict(workload.flags), DTYPES[workload.dtype])


def without_backend(workload: Workload) -> Workload:
    """The same workload on the first backend: what runs on different backends have in common."""
    return replace(workload, backend=BACKENDS[0].name)


def _one_of(field_name: str, value: Any, known: Mapping[str, Any]) -> Any:
    if isinstance(value, str) and value in known:
        return known[value]
    shown = str(value)[:40]
    raise WorkloadError(f"{field_name} must be one of {', '.join(known)}; {shown!r} is not.")


def _switch(title: str, value: Any) -> bool:
    words = {"1": True, "true": True, "on": True, "yes": True, "0": False, "false": False, "off": False, "no": False}
    word = str(value).strip().lower()
    if word not in words:
        raise WorkloadError(f"{title} must be on or off; {str(value)[:40]!r} is neither.")
    return words[word]
