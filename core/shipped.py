"""Which workloads the project ships recordings of, and how much each of them measures."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

from core.backends import BACKENDS
from core.store.manifest import Protocol, protocol_for
from core.workload import (
    PASSES,
    STEPS_ARTICLE,
    Workload,
    applies,
    from_preset,
    layer_of,
    make,
    presets,
    with_changes,
)

#: Compiles in processes of their own, beside those in the warm worker: on request, and for the article's MLP.
FRESH_PROCESS_COMPILES = 3
_SEQ = 128
_BATCHES = (1, 4, 16, 64, 128)
_HIDDEN = (256, 768, 1024, 2048, 4096)
#: Hidden and intermediate of well-known models: widths that are no powers of two.
_REAL_WIDTHS = ((4096, 11008), (5120, 13824), (4096, 14336), (3584, 18944))
_GRID_BACKENDS = ("eager", "compile", "compile_dynamic", "liger")
#: Recorded last, and forward alone: each compiles for up to half a minute.
_SLOW_BACKENDS = ("max_autotune",)
#: What a first look at a layer stacks, where the layer has them.
FIRST_BACKENDS = ("eager", "compile", "liger")


@dataclass(frozen=True)
class Recording:
    """One run to ship and how it is measured."""

    workload: Workload
    protocol: Protocol


def shipped() -> tuple[Recording, ...]:
    """The whole set, what the first page shows first; a workload that two parts name is recorded as the first one says."""
    found: dict[Workload, Recording] = {}
    for one in (*_articles(), *_picks(), *_grid()):
        found.setdefault(one.workload, one)
    return tuple(sorted(found.values(), key=lambda one: one.workload.backend in _SLOW_BACKENDS))


def _articles() -> list[Recording]:
    """The article's scripts in full, also with its own three steps; its MLP's compiles in fresh processes, too."""
    found = []
    articles = [from_preset(preset.name) for _, preset in presets() if preset.group == "article"]
    # The MLP first: in a process that has run other work its kernels land elsewhere in memory, and differ by some percent.
    for base in sorted(articles, key=lambda one: one.layer != "geglu_mlp"):
        for backend, passes in product(FIRST_BACKENDS, PASSES):
            if _applies(base, backend):
                workload = with_changes(base, backend=backend, passes=passes)
                fresh = FRESH_PROCESS_COMPILES if base.layer == "geglu_mlp" and passes == "fwd" else 0
                found.append(Recording(workload, protocol_for(workload, fresh, light=base.layer == "matmul_add")))
        for backend in FIRST_BACKENDS:
            if _applies(base, backend):
                workload = with_changes(base, backend=backend, steps=STEPS_ARTICLE)
                found.append(Recording(workload, protocol_for(workload, light=True)))
    return found


def _picks() -> list[Recording]:
    """Every layer's presets but the models' on every backend, and Part 1's pair with a vector for its bias; light."""
    found = []
    for layer, preset in presets():
        if preset.group == "model":
            continue
        for matrix_bias in (True, False) if layer.name == "matmul_add" else (None,):
            base = from_preset(preset.name, matrix_bias=matrix_bias)
            for backend, passes in product(BACKENDS, PASSES):
                slow = backend.name in _SLOW_BACKENDS and passes != "fwd"
                if _applies(base, backend.name) and not slow:
                    workload = with_changes(base, backend=backend.name, passes=passes)
                    found.append(Recording(workload, protocol_for(workload, light=True)))
    return found


def _grid() -> list[Recording]:
    """Linear and the gated MLPs over batch and width, and at the widths of well-known models; forward, light."""
    found = []
    shapes = [(batch, hidden, 4 * hidden) for hidden in _HIDDEN for batch in _BATCHES]
    for batch, hidden, intermediate in [*shapes, *((64, *width) for width in _REAL_WIDTHS)]:
        for name, backend in product(("linear", "geglu_mlp", "swiglu_mlp"), _GRID_BACKENDS):
            sizes = (
                {"batch": batch * _SEQ, "in_features": hidden, "out_features": intermediate}
                if name == "linear"
                else {"batch": batch, "seq": _SEQ, "hidden": hidden, "intermediate": intermediate}
            )
            base = make({"layer": name, **sizes})
            if _applies(base, backend):
                workload = with_changes(base, backend=backend)
                found.append(Recording(workload, protocol_for(workload, light=True)))
    return found


def _applies(workload: Workload, backend: str) -> bool:
    return applies(next(one for one in BACKENDS if one.name == backend), layer_of(workload))
