"""What a backend has to say about itself: its options, what it needs, and how it turns a module into a callable.

Both processes read this, so nothing here imports torch; `apply` alone may, inside its body, in the worker.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

OptionValue = str | int | bool | None
Options = Mapping[str, OptionValue]


@dataclass(frozen=True)
class Option:
    """One choice of a backend; `choices[0]` is the default."""

    name: str
    title: str
    choices: tuple[OptionValue, ...]
    help: str


@dataclass(frozen=True)
class Backend:
    """A way to carry a layer out.

    `twin` names the hand-written implementation the layer must have (Layer.twins), None for the layer's own build.
    `compiles` says that the first call compiles: such a run holds several cold compiles.
    `needs_gpu` says that it cannot run on a CPU at all.
    `label_prefix` stands before the record_function label, as in the article's kernels_mlp_fwd.
    """

    name: str
    title: str
    description: str
    apply: Callable[[Any, Options], Callable[..., Any]]
    options: tuple[Option, ...] = ()
    twin: str | None = None
    compiles: bool = False
    needs_gpu: bool = False
    label_prefix: str = ""
