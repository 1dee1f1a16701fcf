"""Which size of a layer each dimension of its inputs and weights holds, found by building it without memory."""

from __future__ import annotations

import inspect
from typing import Any

import torch

from core.analysis.ledger import DimName
from core.workload import Workload, backend_of, layer_of

_SMALL, _OTHER = 8, 16


def dims_of(workload: Workload) -> tuple[DimName, ...]:
    """The name of every dimension that a size changes: of inputs as forward() calls them, and of weights as Dynamo does."""
    layer, backend = layer_of(workload), backend_of(workload)
    make = layer.build if backend.twin is None else layer.twins[backend.twin]
    sizes = {size.name: _SMALL for size in layer.sizes}
    plain = _shapes(make, sizes, dict(workload.flags))
    held: dict[tuple[str, int], list[str]] = {}
    for name in sizes:
        changed = _shapes(make, {**sizes, name: _OTHER}, dict(workload.flags))
        for tensor, shape in plain.items():
            for dim, (one, other) in enumerate(zip(shape, changed[tensor], strict=True)):
                if one != other:
                    held.setdefault((tensor, dim), []).append(name)
    return tuple(DimName(tensor, dim, " · ".join(names)) for (tensor, dim), names in held.items())


def _shapes(make: Any, sizes: dict[str, int], flags: dict[str, bool]) -> dict[str, tuple[int, ...]]:
    module, inputs = make(sizes, flags, torch.float32, "meta")
    arguments = list(inspect.signature(module.forward).parameters)
    found = {name: tuple(tensor.shape) for name, tensor in zip(arguments, inputs, strict=False)}
    for name, parameter in module.named_parameters():
        *owners, own = name.split(".")
        path = "".join(f"._modules['{owner}']" for owner in owners)
        found[f"self{path}._parameters['{own}']"] = tuple(parameter.shape)
    return found
