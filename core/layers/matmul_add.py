"""A matrix product and an addition: Part 1's pair of operators, where a compiler may fold the second into the first."""

from __future__ import annotations

from typing import Any

from core.layers.spec import Cost, Flag, Flags, Layer, Preset, Size, Sizes
from core.roles import Role


def build(sizes: Sizes, flags: Flags, dtype: Any, device: str) -> tuple[Any, tuple[Any, ...]]:
    """torch.add(torch.matmul(x, weight), bias) and its input (rows, inner); the weight is stored (inner, columns)."""
    import torch

    class MatmulAdd(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            inner, columns = sizes["inner"], sizes["columns"]
            shape = (sizes["rows"], columns) if flags["matrix_bias"] else (columns,)
            # Weights at the scale nn.Linear starts from, so that half precision keeps its digits.
            self.weight = torch.nn.Parameter(torch.randn(inner, columns, dtype=dtype, device=device) / inner**0.5)
            self.bias = torch.nn.Parameter(torch.randn(shape, dtype=dtype, device=device))

        def forward(self, x: Any) -> Any:
            return torch.add(torch.matmul(x, self.weight), self.bias)

    module = MatmulAdd()
    x = torch.randn(sizes["rows"], sizes["inner"], dtype=dtype, device=device)
    return module, (x,)


def cost(sizes: Sizes, flags: Flags, element_bytes: int) -> Cost:
    """Two operations a multiply-add; eager writes the product, reads it again with the bias, and writes the sum."""
    rows, inner, columns = sizes["rows"], sizes["inner"], sizes["columns"]
    out = rows * columns * element_bytes
    bias = out if flags["matrix_bias"] else columns * element_bytes
    return Cost(
        flops=2 * rows * inner * columns,
        weight_bytes=inner * columns * element_bytes + bias,
        input_bytes=rows * inner * element_bytes,
        intermediate_bytes=out,
        output_bytes=out,
        moved_bytes=2 * out + bias,
        fused_moved_bytes=0,
        largest_elements=max(rows * inner, rows * columns, inner * columns),
    )


LAYER = Layer(
    name="matmul_add",
    title="matmul + add",
    description="torch.add(torch.matmul(x, w), b): two kernels in eager PyTorch, and a compiler may make them one.",
    label="matmul_add",
    sizes=(
        Size("rows", "Rows", 64, "Rows of x and of the result."),
        Size("inner", "Inner", 64, "Columns of x and rows of w: what the product sums over."),
        Size("columns", "Columns", 64, "Columns of w and of the result."),
    ),
    flags=(
        Flag(
            "matrix_bias",
            "Matrix bias",
            True,
            "On: b is a matrix, as in the article's Part 1. Off: a vector, which fits into a GEMM's epilogue.",
        ),
    ),
    build=build,
    cost=cost,
    roles=(
        Role("matmul", "matrix product", True, "torch.matmul."),
        Role("add", "add", False, "torch.add, where it is a kernel of its own."),
    ),
    presets=(
        Preset("matmul_add_64", "Part 1: matmul + add, 64", group="article"),
        Preset(
            "matmul_add_4096",
            "Part 1: matmul + add, 4096",
            sizes={"rows": 4096, "inner": 4096, "columns": 4096},
            group="article",
        ),
    ),
)
