"""What layers that work on each row by itself have in common: sizes, one role, and what they move."""

from __future__ import annotations

from collections.abc import Callable

from core.layers.spec import Cost, Flags, Size, Sizes
from core.roles import Role


def sizes(columns: str, title: str, default: int, help_text: str) -> tuple[Size, ...]:
    """Batch, sequence and the row's own length, named `columns`."""
    return (
        Size("batch", "Batch", 8, "Sequences processed together."),
        Size("seq", "Sequence", 512, "Tokens of each sequence: batch times sequence rows in all."),
        Size(columns, title, default, help_text),
    )


def roles(name: str, help_text: str) -> tuple[Role, ...]:
    """The layer is one thing to do, in however many kernels."""
    return (Role(name, name, False, help_text),)


def cost(
    columns: str, *, vectors: int, passes: int, output: bool, eager_tensors: int
) -> Callable[[Sizes, Flags, int], Cost]:
    """The cost function of such a layer. `vectors` counts its weight vectors, `passes` how often eager kernels read or
    write all the rows, `eager_tensors` the whole tensors that eager keeps between them; `output` says whether the result
    is as large as the input (a loss is not)."""

    def of(found: Sizes, flags: Flags, element_bytes: int) -> Cost:
        elements = found["batch"] * found["seq"] * found[columns]
        whole = elements * element_bytes
        return Cost(
            flops=0,
            weight_bytes=vectors * found[columns] * element_bytes,
            input_bytes=whole,
            intermediate_bytes=eager_tensors * whole,
            output_bytes=whole if output else element_bytes,
            moved_bytes=passes * whole,
            fused_moved_bytes=(2 if output else 1) * whole,
            largest_elements=elements,
        )

    return of
