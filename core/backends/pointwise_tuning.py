"""torch.compile that times more launch configurations of its pointwise kernels, and leaves matrix products alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from core.backends.spec import COLD_COMPILES, Backend


def apply(module: Any) -> Callable[..., Any]:
    """The compiled module; its pointwise kernels are tuned among more candidates."""
    import torch

    return torch.compile(module, options={"max_autotune_pointwise": True})


BACKEND = Backend(
    name="pointwise_tuning",
    title="compile, pointwise tuning",
    description="As torch.compile, with more launch configurations timed for pointwise kernels alone.",
    apply=apply,
    cold_compiles=COLD_COMPILES,
    fuses=True,
)
