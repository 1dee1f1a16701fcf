"""nn.Linear: one GEMM, its bias added in the GEMM's epilogue. The article's 02_linear."""

from __future__ import annotations

from typing import Any

from core.layers.spec import Cost, Flag, Flags, Layer, Preset, Size, Sizes
from core.roles import Role


def build(sizes: Sizes, flags: Flags, dtype: Any, device: str) -> tuple[Any, tuple[Any, ...]]:
    """nn.Linear and its input (batch, in_features)."""
    import torch

    module = torch.nn.Linear(
        sizes["in_features"], sizes["out_features"], bias=flags["bias"], dtype=dtype, device=device
    )
    x = torch.randn(sizes["batch"], sizes["in_features"], dtype=dtype, device=device)
    return module, (x,)


def cost(sizes: Sizes, flags: Flags, element_bytes: int) -> Cost:
    """Two operations a multiply-add; the bias is added in the GEMM's epilogue and moves nothing of its own."""
    batch, n_in, n_out = sizes["batch"], sizes["in_features"], sizes["out_features"]
    bias = flags["bias"]
    return Cost(
        flops=2 * batch * n_in * n_out,
        weight_bytes=(n_in * n_out + (n_out if bias else 0)) * element_bytes,
        input_bytes=batch * n_in * element_bytes,
        intermediate_bytes=0,
        output_bytes=batch * n_out * element_bytes,
        moved_bytes=0,
        fused_moved_bytes=0,
        largest_elements=max(batch * n_in, batch * n_out, n_in * n_out),
    )


LAYER = Layer(
    name="linear",
    title="nn.Linear",
    description="One matrix multiplication, y = x Wᵀ + b. The bias costs no kernel of its own.",
    label="linear",
    sizes=(
        Size("batch", "Batch", 1024, "Rows of the input: batch times sequence length, if there is one."),
        Size("in_features", "In features", 32, "Columns of the input."),
        Size("out_features", "Out features", 64, "Columns of the output."),
    ),
    flags=(Flag("bias", "Bias", True, "Add a bias vector to every output row."),),
    build=build,
    cost=cost,
    roles=(
        Role(
            "matmul", "matrix product", True, "The whole layer: the bias, where there is one, is added in its epilogue."
        ),
        Role("other", "other", False, "Work beside the matrix product; a lone Linear needs none."),
    ),
    presets=(
        Preset("02_linear", "02_linear: nn.Linear", group="article"),
        Preset(
            "mlp_gate",
            "The MLP's gate alone: 8192 × 768 → 3072",
            sizes={"batch": 8192, "in_features": 768, "out_features": 3072},
            flags={"bias": False},
        ),
    ),
)
