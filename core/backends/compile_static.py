"""torch.compile told that sizes are fixed: every new size is one more compile."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from core.backends.spec import COLD_COMPILES, Backend


def apply(module: Any) -> Callable[..., Any]:
    """The compiled module; every size is a constant of its kernels."""
    import torch

    return torch.compile(module, dynamic=False)


BACKEND = Backend(
    name="compile_static",
    title="compile, dynamic=False",
    description="As torch.compile, told that every size is fixed: each new one is one more compile.",
    apply=apply,
    cold_compiles=COLD_COMPILES,
    fuses=True,
    dynamic=False,
)
