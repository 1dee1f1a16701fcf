"""Softmax over each row: one kernel in eager PyTorch."""

from __future__ import annotations

from typing import Any

from core.layers import rows
from core.layers.spec import Flags, Layer, Preset, Sizes


def build(sizes: Sizes, flags: Flags, dtype: Any, device: str) -> tuple[Any, tuple[Any, ...]]:
    """torch.softmax over the last dimension, and its input (batch, seq, columns)."""
    import torch

    class Softmax(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return torch.softmax(x, dim=-1)

    x = torch.randn(sizes["batch"], sizes["seq"], sizes["columns"], dtype=dtype, device=device)
    return Softmax(), (x,)


def build_liger(sizes: Sizes, flags: Flags, dtype: Any, device: str) -> tuple[Any, tuple[Any, ...]]:
    """The same in Liger's Triton kernel."""
    import torch
    from liger_kernel.ops import LigerSoftmaxFunction

    class LigerSoftmax(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return LigerSoftmaxFunction.apply(x)

    x = torch.randn(sizes["batch"], sizes["seq"], sizes["columns"], dtype=dtype, device=device)
    return LigerSoftmax(), (x,)


LAYER = Layer(
    name="softmax",
    title="Softmax",
    description="exp(x) over its sum, row by row: one kernel even in eager PyTorch.",
    label="softmax",
    sizes=rows.sizes("columns", "Columns", 4096, "Length of a row, such as the sequence that attention looks over."),
    build=build,
    cost=rows.cost("columns", vectors=0, passes=2, output=True, eager_tensors=0),
    roles=rows.roles("softmax", "The whole layer: the row's largest value, exponentials, their sum, the division."),
    twins={"liger": build_liger},
    presets=(Preset("softmax", "Softmax, 4096 wide"),),
)
