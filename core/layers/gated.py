"""What the gated MLPs have in common: down(f(gate(x)) · up(x)), three matrix products and the activation between them."""

from __future__ import annotations

from core.layers.spec import Cost, Flags, Size, Sizes
from core.roles import Role

SIZES = (
    Size("batch", "Batch", 64, "Sequences processed together."),
    Size("seq", "Sequence", 128, "Tokens of each sequence."),
    Size("hidden", "Hidden", 768, "Width of the model: columns of input and output."),
    Size("intermediate", "Intermediate", 3072, "Width between the projections."),
)
ROLES = (
    Role("gate", "gate", True, "The matrix product whose result goes through the activation."),
    Role("up", "up", True, "The matrix product that the activated gate is multiplied with."),
    Role("activation", "activation", False, "The activation of the gate, times up: the part that fusing changes."),
    Role("down", "down", True, "The matrix product back to the model's width."),
)


def cost(sizes: Sizes, flags: Flags, element_bytes: int) -> Cost:
    """Three GEMMs; eager writes gate, up, the activated gate and the product between them."""
    rows, hidden, intermediate = sizes["batch"] * sizes["seq"], sizes["hidden"], sizes["intermediate"]
    between = rows * intermediate * element_bytes
    return Cost(
        flops=6 * rows * hidden * intermediate,
        weight_bytes=3 * hidden * intermediate * element_bytes,
        input_bytes=rows * hidden * element_bytes,
        intermediate_bytes=4 * between,
        output_bytes=rows * hidden * element_bytes,
        moved_bytes=5 * between,
        fused_moved_bytes=3 * between,
        largest_elements=max(rows * intermediate, rows * hidden, hidden * intermediate),
    )
