"""torch.compile with CUDA graphs: the kernels of a step go out in a single launch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from core.backends.spec import COLD_COMPILES, Backend


def apply(module: Any) -> Callable[..., Any]:
    """The compiled module; after two calls a step is a CUDA graph."""
    import torch

    return torch.compile(module, mode="reduce-overhead")


BACKEND = Backend(
    name="reduce_overhead",
    title="compile, reduce-overhead",
    description="As torch.compile, and the kernels of a step go out as one CUDA graph, in a single launch.",
    apply=apply,
    cold_compiles=COLD_COMPILES,
    fuses=True,
    replays_graphs=True,
)
