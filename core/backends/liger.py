"""Liger: the layer's twin built on Liger-Kernel's hand-written Triton kernels. No graph capture, no guards."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from core.backends.spec import Backend


def apply(module: Any) -> Callable[..., Any]:
    """The twin as it is: its Triton kernel compiles at the first call for each width."""
    return module


BACKEND = Backend(
    name="liger",
    title="Liger kernels",
    description="The layer built on Liger-Kernel's hand-written Triton kernels.",
    apply=apply,
    twin="liger",
    fuses=True,
    needs_gpu=True,
    label_prefix="kernels_",
)
