"""torch.compile that times many more candidates, Triton matrix products among them: slow to compile."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from core.backends.spec import Backend


def apply(module: Any) -> Callable[..., Any]:
    """The compiled module; the first call times dozens of candidates."""
    import torch

    return torch.compile(module, mode="max-autotune")


BACKEND = Backend(
    name="max_autotune",
    title="compile, max-autotune",
    description="As torch.compile with CUDA graphs; many more candidates are timed, Triton matrix products too: slow to compile.",
    apply=apply,
    fuses=True,
    # Half a minute each for a gated MLP: the run says that it stands on one.
    cold_compiles=1,
    replays_graphs=True,
)
