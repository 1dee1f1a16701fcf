"""torch.compile told from the start that sizes will change: one compile serves them all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from core.backends.spec import COLD_COMPILES, Backend


def apply(module: Any) -> Callable[..., Any]:
    """The compiled module; its kernels take sizes as arguments."""
    import torch

    return torch.compile(module, dynamic=True)


BACKEND = Backend(
    name="compile_dynamic",
    title="compile, dynamic=True",
    description="As torch.compile, told from the start that sizes will change: its kernels take them as arguments.",
    apply=apply,
    cold_compiles=COLD_COMPILES,
    fuses=True,
    dynamic=True,
)
