"""From a Workload to the step that is measured, and to the eager fp32 reference it is compared with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from core.bench.machine import TORCH_DTYPES
from core.store.manifest import NumericError
from core.workload import Workload, backend_of, layer_of


@dataclass(frozen=True)
class Built:
    """A layer on the device, its inputs, and for a backward pass the gradient that flows in (None for forward)."""

    module: torch.nn.Module
    inputs: tuple[torch.Tensor, ...]
    gradient: torch.Tensor | None


def build(workload: Workload, device: str, dtype: torch.dtype | None = None, *, reference: bool = False) -> Built:
    """The layer with seeded weights and inputs, made on the device itself.

    `reference` takes the layer's own build even where the backend names a twin; both draw the same numbers.
    """
    layer, backend = layer_of(workload), backend_of(workload)
    dtype = dtype or TORCH_DTYPES[workload.dtype]
    make = layer.build if reference or backend.twin is None else layer.twins[backend.twin]
    torch.manual_seed(workload.seed)
    module, inputs = make(dict(workload.sizes), dict(workload.flags), dtype, device)
    if workload.passes == "fwd":
        return Built(module.eval(), inputs, None)
    with torch.no_grad():
        out = module(*inputs)
    # A loss is where backward passes start, with 1.
    gradient = torch.randn_like(out) if out.dim() else torch.ones_like(out)
    for tensor in inputs:
        tensor.requires_grad_(tensor.is_floating_point())
    return Built(module.train(), inputs, gradient)


def step_of(built: Built, call: Callable[..., Any]) -> Callable[[], Any]:
    """The step: a forward call under no_grad, or forward and backward with gradients freshly made each time."""
    if built.gradient is None:

        def forward() -> Any:
            with torch.no_grad():
                return call(*built.inputs)

        return forward

    leaves = [tensor for _, tensor in _leaves(built)]

    def forward_backward() -> Any:
        for leaf in leaves:
            leaf.grad = None  # or autograd would add to it: a kernel that the layer does not have
        out = call(*built.inputs)
        out.backward(built.gradient)
        return out

    return forward_backward


def numeric_errors(workload: Workload, built: Built, step: Callable[[], Any], device: str) -> tuple[NumericError, ...]:
    """Output (and gradients) against the same layer, weights and inputs in eager fp32 on the same device.

    Raises what torch raises, out of memory among it.
    """
    out = step()
    found = {"output": out.detach(), **{name: leaf.grad for name, leaf in _leaves(built) if built.gradient is not None}}
    reference = build(workload, device, torch.float32, reference=True)
    reference.module.load_state_dict({name: value.float() for name, value in built.module.state_dict().items()})
    inputs = tuple(_wide(tensor) for tensor in built.inputs)
    gradient = None if built.gradient is None else built.gradient.float()
    exact = Built(reference.module, inputs, gradient)
    wanted_out = step_of(exact, exact.module)()
    wanted = {
        "output": wanted_out.detach(),
        **{name: leaf.grad for name, leaf in _leaves(exact) if gradient is not None},
    }
    return tuple(_error(name, found[name], wanted[name]) for name in found)


def _wide(tensor: torch.Tensor) -> torch.Tensor:
    """The same input in fp32; token numbers stay what they are."""
    return tensor.detach().float().requires_grad_(tensor.requires_grad) if tensor.is_floating_point() else tensor


def _leaves(built: Built) -> list[tuple[str, torch.Tensor]]:
    named = [
        (f"gradient of input {index}", tensor) for index, tensor in enumerate(built.inputs) if tensor.requires_grad
    ]
    return named + [(f"gradient of {name}", parameter) for name, parameter in built.module.named_parameters()]


def _error(name: str, found: torch.Tensor | None, wanted: torch.Tensor | None) -> NumericError:
    if found is None or wanted is None:
        return NumericError(name, None, None)
    if not bool(torch.isfinite(found).all()):
        return NumericError(name, None, None, finite=False)
    difference = found.float() - wanted
    norm = float(wanted.norm())
    relative = float(difference.norm()) / norm if norm else None
    return NumericError(name, relative, float(difference.abs().max()))
