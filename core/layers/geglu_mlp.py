"""The gated MLP of the article: down(gelu_tanh(gate(x)) * up(x)), no biases. Three GEMMs and what lies between."""

from __future__ import annotations

from typing import Any

from core.layers import gated
from core.layers.spec import Flags, Layer, Preset, Sizes


def build(sizes: Sizes, flags: Flags, dtype: Any, device: str) -> tuple[Any, tuple[Any, ...]]:
    """The MLP in plain PyTorch and its input (batch, seq, hidden)."""
    import torch

    class GegluMlp(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            hidden, intermediate = sizes["hidden"], sizes["intermediate"]
            self.gate = torch.nn.Linear(hidden, intermediate, bias=False, dtype=dtype, device=device)
            self.up = torch.nn.Linear(hidden, intermediate, bias=False, dtype=dtype, device=device)
            self.down = torch.nn.Linear(intermediate, hidden, bias=False, dtype=dtype, device=device)

        def forward(self, x: Any) -> Any:
            return self.down(torch.nn.functional.gelu(self.gate(x), approximate="tanh") * self.up(x))

    module = GegluMlp()
    x = torch.randn(sizes["batch"], sizes["seq"], sizes["hidden"], dtype=dtype, device=device)
    return module, (x,)


def build_liger(sizes: Sizes, flags: Flags, dtype: Any, device: str) -> tuple[Any, tuple[Any, ...]]:
    """The same MLP with Liger's Triton kernel for gelu_tanh(gate) * up."""
    import torch
    from liger_kernel.ops import LigerGELUMulFunction

    class LigerGegluMlp(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            hidden, intermediate = sizes["hidden"], sizes["intermediate"]
            self.gate = torch.nn.Linear(hidden, intermediate, bias=False, dtype=dtype, device=device)
            self.up = torch.nn.Linear(hidden, intermediate, bias=False, dtype=dtype, device=device)
            self.down = torch.nn.Linear(intermediate, hidden, bias=False, dtype=dtype, device=device)

        def forward(self, x: Any) -> Any:
            return self.down(LigerGELUMulFunction.apply(self.gate(x), self.up(x)))

    module = LigerGegluMlp()
    x = torch.randn(sizes["batch"], sizes["seq"], sizes["hidden"], dtype=dtype, device=device)
    return module, (x,)


LAYER = Layer(
    name="geglu_mlp",
    title="Gated MLP (GEGLU)",
    description="down(gelu(gate(x)) · up(x)): three matrix multiplications and the activation between them.",
    label="mlp",
    sizes=gated.SIZES,
    build=build,
    cost=gated.cost,
    roles=gated.ROLES,
    twins={"liger": build_liger},
    presets=(
        Preset("03_simple_mlp", "03_simple_mlp: gated MLP", group="article"),
        Preset("03_kernels_mlp", "03_kernels_mlp: Liger's MLP", backend="liger", group="article"),
        Preset("gemma-2b", "Gemma 2B: MLP", sizes={"hidden": 2048, "intermediate": 16384}, group="model"),
        Preset("gemma-7b", "Gemma 7B: MLP", sizes={"hidden": 3072, "intermediate": 24576}, group="model"),
        Preset("gemma-2-9b", "Gemma 2 9B: MLP", sizes={"hidden": 3584, "intermediate": 14336}, group="model"),
    ),
)
