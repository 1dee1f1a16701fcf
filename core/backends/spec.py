"""What a backend has to say about itself: what it needs, and how it turns a module into a callable.

Both processes read this, so nothing here imports torch; `apply` alone may, inside its body, in the worker. Every way to
carry a layer out that people compare has a name of its own: a stack of four needs four names, not one with options.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

#: One compile is an anecdote: a run on a compiling backend holds this many cold ones, unless it is a light one of many.
COLD_COMPILES = 3


@dataclass(frozen=True)
class Backend:
    """A way to carry a layer out.

    `twin` names the hand-written implementation the layer must have (Layer.twins), None for the layer's own build.
    `cold_compiles` says that the first call compiles, and how many cold compiles a run of it holds; 0 for none.
    `fuses` says that it does neighbouring operators' work in one kernel.
    `dynamic` is the argument of that name that torch.compile is given, None where that is left to PyTorch.
    `replays_graphs` says that it launches a step as a CUDA graph by itself.
    `needs_gpu` says that it cannot run on a CPU at all.
    `label_prefix` stands before the record_function label, as in the article's kernels_mlp_fwd.
    """

    name: str
    title: str
    description: str
    apply: Callable[[Any], Callable[..., Any]]
    twin: str | None = None
    cold_compiles: int = 0
    fuses: bool = False
    dynamic: bool | None = None
    replays_graphs: bool = False
    needs_gpu: bool = False
    label_prefix: str = ""

    @property
    def compiles(self) -> bool:
        """Whether the first call compiles."""
        return self.cold_compiles > 0
