"""The doctor's own Triton kernel: as small as one can be, so that what fails is Triton and not the kernel."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def add_number(x, out, size: tl.constexpr, number: tl.constexpr):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    """out[i] = x[i] + number for i < size. A number it has not seen yet makes Triton compile anew."""
    index = tl.arange(0, size)
    tl.store(out + index, tl.load(x + index) + number)
