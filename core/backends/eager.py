"""Eager: PyTorch runs one operator after the other, each with its own kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from core.backends.spec import Backend


def apply(module: Any) -> Callable[..., Any]:
    """The module as it is."""
    return module


BACKEND = Backend(
    name="eager",
    title="Eager",
    description="PyTorch runs one operator after the other, each with its own kernels.",
    apply=apply,
)
