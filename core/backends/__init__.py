"""The backends that can carry a layer out: one file each. A new one is its file and its line in BACKENDS."""

from core.backends import compile, eager, liger
from core.backends.spec import Backend, Option

BACKENDS: tuple[Backend, ...] = (
    eager.BACKEND,
    compile.BACKEND,
    liger.BACKEND,
)

__all__ = ["BACKENDS", "Backend", "Option"]
