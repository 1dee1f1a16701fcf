"""torch.compile with its defaults: Dynamo captures the call, Inductor fuses what it can into kernels of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from core.backends.spec import COLD_COMPILES, Backend


def apply(module: Any) -> Callable[..., Any]:
    """The compiled module; the first call compiles."""
    import torch

    return torch.compile(module)


BACKEND = Backend(
    name="compile",
    title="torch.compile",
    description="Dynamo captures the call, Inductor fuses what it can into kernels of its own.",
    apply=apply,
    cold_compiles=COLD_COMPILES,
    fuses=True,
)
