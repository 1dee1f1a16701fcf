"""What a layer has to say about itself: its sizes, flags, roles, cost, presets, and how to build it.

Both processes read this, so nothing here imports torch; `build` alone may, inside its body, in the worker.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from core.roles import Role

Sizes = Mapping[str, int]
Flags = Mapping[str, bool]
#: (sizes, flags, dtype, device) -> (module, inputs). The caller seeds; modules are made on the device itself.
Build = Callable[[Sizes, Flags, Any, str], tuple[Any, tuple[Any, ...]]]


@dataclass(frozen=True)
class Size:
    """One size a person picks. `default` is the article's where it has one."""

    name: str
    title: str
    default: int
    help: str


@dataclass(frozen=True)
class Flag:
    """One on/off choice of a layer."""

    name: str
    title: str
    default: bool
    help: str


@dataclass(frozen=True)
class Cost:
    """What one forward call must do: floating-point operations of its matrix products, and bytes.

    `weight_bytes`, `input_bytes` and `output_bytes` live on the device for the whole run; `intermediate_bytes` is what
    eager execution keeps between its kernels. `moved_bytes` is what the kernels that are no matrix products read and
    write in eager execution, `fused_moved_bytes` the same where one kernel does all of it: the floor of a fusion.
    `largest_elements` counts the elements of the largest tensor.
    """

    flops: int
    weight_bytes: int
    input_bytes: int
    intermediate_bytes: int
    output_bytes: int
    moved_bytes: int
    fused_moved_bytes: int
    largest_elements: int


@dataclass(frozen=True)
class Preset:
    """A named pick. `sizes` and `flags` name only what differs from the layer's defaults; `group` is where it is offered:
    the article's scripts, well-known models, or a layer's own first pick."""

    name: str
    title: str
    backend: str = "eager"
    sizes: Sizes = field(default_factory=dict)
    flags: Flags = field(default_factory=dict)
    group: str = "layer"


@dataclass(frozen=True)
class Layer:
    """A layer that can be run.

    `cost(sizes, flags, bytes_per_element)` is computed from shapes alone.
    `twins` maps the name of a hand-written implementation ("liger") to its build; a twin takes the same arguments,
    draws its weights in the same order and has the same state_dict keys, so that both hold the same numbers.
    """

    name: str
    title: str
    description: str
    label: str
    sizes: tuple[Size, ...]
    build: Build
    cost: Callable[[Sizes, Flags, int], Cost]
    roles: tuple[Role, ...]
    flags: tuple[Flag, ...] = ()
    twins: Mapping[str, Build] = field(default_factory=dict)
    presets: tuple[Preset, ...] = ()
