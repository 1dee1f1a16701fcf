"""Roles: the parts that a layer's work has, whoever does them. A leaf that layers, analysis and charts all read."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Role:
    """One thing that a forward step has to do, whoever does it; kernels of different backends are compared by it.

    `matmul` roles take the matrix products of a step in order; another role takes every other kernel. A layer has at
    most one of the other kind.
    """

    name: str
    title: str
    matmul: bool
    help: str


COPY = Role(
    "copy",
    "copies",
    False,
    "Data moved as it is: a bias into the result that a GEMM adds to, inputs into a CUDA graph.",
)
FILL = Role("fill", "fills", False, "Memory set to one value, such as a GEMM's workspace.")
BACKWARD_MATMUL = Role("backward_matmul", "backward, matrix products", True, "Matrix products of the backward pass.")
BACKWARD_OTHER = Role("backward_other", "backward, the rest", False, "What the backward pass does beside them.")
#: What any layer's step may hold beside the layer's own roles.
EXTRA_ROLES = (COPY, FILL, BACKWARD_MATMUL, BACKWARD_OTHER)
