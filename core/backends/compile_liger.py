"""torch.compile over the layer's Liger twin: the hand-written kernel stays, what is around it is compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from core.backends.spec import COLD_COMPILES, Backend


def apply(module: Any) -> Callable[..., Any]:
    """The compiled twin; the first call compiles."""
    import torch

    return torch.compile(module)


BACKEND = Backend(
    name="compile_liger",
    title="compile over Liger",
    description="torch.compile over the Liger layer: the hand-written kernel stays, what is around it is compiled.",
    apply=apply,
    cold_compiles=COLD_COMPILES,
    fuses=True,
    twin="liger",
    needs_gpu=True,
    label_prefix="kernels_",
)
