"""RMSNorm as Llama writes it: each row over the root of its mean square, times a weight."""

from __future__ import annotations

from typing import Any

from core.layers import rows
from core.layers.spec import Flags, Layer, Preset, Sizes


def build(sizes: Sizes, flags: Flags, dtype: Any, device: str) -> tuple[Any, tuple[Any, ...]]:
    """The norm in single operators, squares and mean in fp32, and its input (batch, seq, hidden)."""
    import torch

    class RmsNorm(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.randn(sizes["hidden"], dtype=dtype, device=device))

        def forward(self, x: Any) -> Any:
            wide = x.float()
            scaled = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)
            return self.weight * scaled.to(x.dtype)

    module = RmsNorm()
    x = torch.randn(sizes["batch"], sizes["seq"], sizes["hidden"], dtype=dtype, device=device)
    return module, (x,)


def build_liger(sizes: Sizes, flags: Flags, dtype: Any, device: str) -> tuple[Any, tuple[Any, ...]]:
    """The same norm in Liger's Triton kernel."""
    import torch
    from liger_kernel.ops import LigerRMSNormFunction

    class LigerRmsNorm(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.randn(sizes["hidden"], dtype=dtype, device=device))

        def forward(self, x: Any) -> Any:
            # Not in place: the kernel would write over the gradient that flows in, which every step reads again.
            return LigerRMSNormFunction.apply(x, self.weight, 1e-6, 0.0, "llama", False)

    module = LigerRmsNorm()
    x = torch.randn(sizes["batch"], sizes["seq"], sizes["hidden"], dtype=dtype, device=device)
    return module, (x,)


LAYER = Layer(
    name="rms_norm",
    title="RMSNorm",
    description="Each row over the root of its mean square, times a weight: six kernels in eager PyTorch.",
    label="rms_norm",
    sizes=rows.sizes("hidden", "Hidden", 4096, "Width of the model: columns of a row."),
    build=build,
    cost=rows.cost("hidden", vectors=1, passes=15, output=True, eager_tensors=8),
    roles=rows.roles("norm", "The whole layer: square, mean, root, scale."),
    twins={"liger": build_liger},
    presets=(Preset("rms_norm", "RMSNorm, 4096 wide"),),
)
