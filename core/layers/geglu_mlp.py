"""The gated MLP of the article: down(gelu_tanh(gate(x)) * up(x)), no biases. Three GEMMs and what lies between."""

from __future__ import annotations

from typing import Any

from core.layers.spec import Cost, Flags, Layer, Preset, Size, Sizes


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


def cost(sizes: Sizes, flags: Flags, element_bytes: int) -> Cost:
    """Three GEMMs; eager writes gate, up, gelu(gate) and the product between them."""
    rows, hidden, intermediate = sizes["batch"] * sizes["seq"], sizes["hidden"], sizes["intermediate"]
    return Cost(
        flops=6 * rows * hidden * intermediate,
        weight_bytes=3 * hidden * intermediate * element_bytes,
        input_bytes=rows * hidden * element_bytes,
        intermediate_bytes=4 * rows * intermediate * element_bytes,
        output_bytes=rows * hidden * element_bytes,
    )


LAYER = Layer(
    name="geglu_mlp",
    title="Gated MLP (GEGLU)",
    description="down(gelu(gate(x)) · up(x)): three matrix multiplications and the activation between them.",
    label="mlp",
    sizes=(
        Size("batch", "Batch", 64, "Sequences processed together."),
        Size("seq", "Sequence", 128, "Tokens of each sequence."),
        Size("hidden", "Hidden", 768, "Width of the model: columns of input and output."),
        Size("intermediate", "Intermediate", 3072, "Width between the projections."),
    ),
    build=build,
    cost=cost,
    twins={"liger": build_liger},
    presets=(
        Preset("03_simple_mlp", "03_simple_mlp: gated MLP", backend="eager"),
        Preset("03_kernels_mlp", "03_kernels_mlp: Liger's MLP", backend="liger"),
    ),
)
