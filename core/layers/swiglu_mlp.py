"""The gated MLP of Llama, Qwen and Mistral: down(silu(gate(x)) * up(x)), no biases."""

from __future__ import annotations

from typing import Any

from core.layers import gated
from core.layers.spec import Flags, Layer, Preset, Sizes


def build(sizes: Sizes, flags: Flags, dtype: Any, device: str) -> tuple[Any, tuple[Any, ...]]:
    """The MLP in plain PyTorch and its input (batch, seq, hidden)."""
    import torch

    class SwigluMlp(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            hidden, intermediate = sizes["hidden"], sizes["intermediate"]
            self.gate = torch.nn.Linear(hidden, intermediate, bias=False, dtype=dtype, device=device)
            self.up = torch.nn.Linear(hidden, intermediate, bias=False, dtype=dtype, device=device)
            self.down = torch.nn.Linear(intermediate, hidden, bias=False, dtype=dtype, device=device)

        def forward(self, x: Any) -> Any:
            return self.down(torch.nn.functional.silu(self.gate(x)) * self.up(x))

    module = SwigluMlp()
    x = torch.randn(sizes["batch"], sizes["seq"], sizes["hidden"], dtype=dtype, device=device)
    return module, (x,)


def build_liger(sizes: Sizes, flags: Flags, dtype: Any, device: str) -> tuple[Any, tuple[Any, ...]]:
    """The same MLP with Liger's Triton kernel for silu(gate) * up."""
    import torch
    from liger_kernel.ops import LigerSiLUMulFunction

    class LigerSwigluMlp(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            hidden, intermediate = sizes["hidden"], sizes["intermediate"]
            self.gate = torch.nn.Linear(hidden, intermediate, bias=False, dtype=dtype, device=device)
            self.up = torch.nn.Linear(hidden, intermediate, bias=False, dtype=dtype, device=device)
            self.down = torch.nn.Linear(intermediate, hidden, bias=False, dtype=dtype, device=device)

        def forward(self, x: Any) -> Any:
            return self.down(LigerSiLUMulFunction.apply(self.gate(x), self.up(x)))

    module = LigerSwigluMlp()
    x = torch.randn(sizes["batch"], sizes["seq"], sizes["hidden"], dtype=dtype, device=device)
    return module, (x,)


LAYER = Layer(
    name="swiglu_mlp",
    title="Gated MLP (SwiGLU)",
    description="down(silu(gate(x)) · up(x)): the MLP of Llama, Qwen and Mistral.",
    label="swiglu_mlp",
    sizes=gated.SIZES,
    build=build,
    cost=gated.cost,
    roles=gated.ROLES,
    twins={"liger": build_liger},
    presets=(
        Preset("swiglu_mlp", "SwiGLU MLP, the article's sizes"),
        Preset("llama-2-7b", "Llama 2 7B: MLP", sizes={"hidden": 4096, "intermediate": 11008}, group="model"),
        Preset("llama-2-13b", "Llama 2 13B: MLP", sizes={"hidden": 5120, "intermediate": 13824}, group="model"),
        Preset("llama-3-8b", "Llama 3 8B: MLP", sizes={"hidden": 4096, "intermediate": 14336}, group="model"),
        Preset("mistral-7b", "Mistral 7B: MLP", sizes={"hidden": 4096, "intermediate": 14336}, group="model"),
        Preset("qwen2.5-7b", "Qwen2.5 7B: MLP", sizes={"hidden": 3584, "intermediate": 18944}, group="model"),
        Preset("qwen2.5-14b", "Qwen2.5 14B: MLP", sizes={"hidden": 5120, "intermediate": 13824}, group="model"),
    ),
)
