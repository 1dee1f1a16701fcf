"""One palette: colour = kernel family, tint = kernel name, so the same kernel has the same colour on every page.

The family colours are told apart by the common kinds of colour blindness (after Okabe & Ito, and Paul Tol's schemes).
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass

from core.analysis.families import short_name
from core.roles import Role

FAMILY_COLOURS: dict[str, str] = {
    "gemm": "#3b76c4",
    "fused": "#d55e00",
    "liger": "#009e73",
    "triton": "#44aa99",
    "elementwise": "#e0a100",
    "reduction": "#cc79a7",
    "norm": "#a3426b",
    "softmax": "#aa55aa",
    "attention": "#7b68d9",
    "conv": "#8f8f2a",
    "copy": "#7f8c9b",
    "fill": "#aab3bd",
    "collective": "#9c5a2e",
    "other": "#6b7280",
    # CPU lanes are quiet, so that what the GPU ran stands out
    "op": "#8fa6c6",
    "annotation": "#b9c4d4",
    "launch": "#56b4e9",
}
#: Where one chart compares what runs do of a layer, colour tells the role instead of the kernel; a legend says so.
_PRODUCT_TINTS = ("#1f4e8c", "#4a90d9", "#7fb8f0")
_EXTRA_ROLE_COLOURS = {
    "copy": FAMILY_COLOURS["copy"],
    "fill": FAMILY_COLOURS["fill"],
    "backward_matmul": "#6b5fb5",
    "backward_other": "#c98a1b",
}
#: Where colour tells the backend: the registry's names, in its order; any other name takes a spare one.
BACKEND_COLOURS: dict[str, str] = {
    "eager": "#949ca8",
    "compile": "#d55e00",
    "liger": "#009e73",
    "compile_dynamic": "#e69f00",
    "compile_static": "#0072b2",
    "reduce_overhead": "#56b4e9",
    "max_autotune": "#b51c6b",
    "pointwise_tuning": "#541ad0",
    "compile_liger": "#d0b454",
}
_SPARE_COLOURS = ("#9c5a2e", "#7f8c9b", "#a3426b")
_TINTS = (0.0, 0.2, -0.14, 0.32, -0.24)


@dataclass(frozen=True)
class Look:
    """Colours that depend on the page's theme."""

    text: str
    faint: str
    grid: str
    mark: str
    ground: str


# The ground and the text are those of .streamlit/config.toml.
LIGHT = Look(text="#1f2733", faint="#5b6675", grid="#e3e8ef", mark="#b3003c", ground="#ffffff")
DARK = Look(text="#e8edf4", faint="#9aa7b8", grid="#2a3240", mark="#ff6b9a", ground="#10141b")


def look(dark: bool) -> Look:
    """The look of a theme."""
    return DARK if dark else LIGHT


def colour(family: str, name: str | None = None) -> str:
    """The family's colour, tinted by the kernel's name where one is given."""
    base = FAMILY_COLOURS.get(family, FAMILY_COLOURS["other"])
    if name is None or family in ("op", "annotation", "launch"):
        return base
    tint = _TINTS[zlib.crc32(name.encode()) % len(_TINTS)]
    return mixed(base, "#ffffff", tint) if tint >= 0 else mixed(base, "#000000", -tint)


def role_colours(roles: Sequence[Role]) -> dict[str, str]:
    """A colour a role, by its name: blues for the matrix products in their order, orange for the layer's other work."""
    products = iter(_PRODUCT_TINTS * len(roles))
    found = {}
    for role in roles:
        if role.name in _EXTRA_ROLE_COLOURS:
            found[role.name] = _EXTRA_ROLE_COLOURS[role.name]
        else:
            found[role.name] = next(products) if role.matmul else FAMILY_COLOURS["fused"]
    return found


def backend_colours(names: Sequence[str]) -> dict[str, str]:
    """A colour a backend, by its name: the same on every chart, whichever of them are drawn."""
    spare = iter(_SPARE_COLOURS * len(names))
    return {name: BACKEND_COLOURS.get(name) or next(spare) for name in dict.fromkeys(names)}


def text_on(ground: str) -> str:
    """Dark or light text, whichever reads better on the colour."""
    red, green, blue = (int(ground[i : i + 2], 16) for i in (1, 3, 5))
    return "#ffffff" if 0.299 * red + 0.587 * green + 0.114 * blue < 150 else "#10141b"


def shorten(name: str, width: int = 44) -> str:
    """A long kernel name cut in the middle: its start says what it is, its end which variant."""
    if len(name) > width:
        name = short_name(name)
    if len(name) <= width:
        return name
    tail = (width - 1) // 2
    return f"{name[: width - 1 - tail]}…{name[-tail:]}"


def mixed(base: str, other: str, share: float) -> str:
    """The colour between two, `share` of the way from the first to the other."""
    pairs = ((int(base[i : i + 2], 16), int(other[i : i + 2], 16)) for i in (1, 3, 5))
    return "#" + "".join(f"{round(a + (b - a) * share):02x}" for a, b in pairs)
