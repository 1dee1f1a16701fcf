"""nn.LayerNorm: one kernel in eager PyTorch already, so there is little left to fuse."""

from __future__ import annotations

from typing import Any

from core.layers import rows
from core.layers.spec import Flags, Layer, Preset, Sizes


def build(sizes: Sizes, flags: Flags, dtype: Any, device: str) -> tuple[Any, tuple[Any, ...]]:
    """nn.LayerNorm with weight and bias, and its input (batch, seq, hidden)."""
    import torch

    class LayerNorm(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.randn(sizes["hidden"], dtype=dtype, device=device))
            self.bias = torch.nn.Parameter(torch.randn(sizes["hidden"], dtype=dtype, device=device))

        def forward(self, x: Any) -> Any:
            return torch.nn.functional.layer_norm(x, (sizes["hidden"],), self.weight, self.bias, 1e-5)

    module = LayerNorm()
    x = torch.randn(sizes["batch"], sizes["seq"], sizes["hidden"], dtype=dtype, device=device)
    return module, (x,)


def build_liger(sizes: Sizes, flags: Flags, dtype: Any, device: str) -> tuple[Any, tuple[Any, ...]]:
    """The same norm in Liger's Triton kernel."""
    import torch
    from liger_kernel.ops import LigerLayerNormFunction

    class LigerLayerNorm(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.randn(sizes["hidden"], dtype=dtype, device=device))
            self.bias = torch.nn.Parameter(torch.randn(sizes["hidden"], dtype=dtype, device=device))

        def forward(self, x: Any) -> Any:
            return LigerLayerNormFunction.apply(x, self.weight, self.bias, 1e-5)

    module = LigerLayerNorm()
    x = torch.randn(sizes["batch"], sizes["seq"], sizes["hidden"], dtype=dtype, device=device)
    return module, (x,)


LAYER = Layer(
    name="layer_norm",
    title="LayerNorm",
    description="Each row less its mean, over its deviation, times a weight, plus a bias: one kernel even in eager PyTorch.",
    label="layer_norm",
    sizes=rows.sizes("hidden", "Hidden", 4096, "Width of the model: columns of a row."),
    build=build,
    cost=rows.cost("hidden", vectors=2, passes=2, output=True, eager_tensors=0),
    roles=rows.roles("norm", "The whole layer: mean, deviation, scale and shift."),
    twins={"liger": build_liger},
    presets=(Preset("layer_norm", "LayerNorm, 4096 wide"),),
)
