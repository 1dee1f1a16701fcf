"""The backends that can carry a layer out: one file each. A new one is its file and its name in FILES."""

from importlib import import_module

from core.backends.spec import Backend

FILES = (
    "eager",
    "compile",
    "liger",
    "compile_dynamic",
    "compile_static",
    "reduce_overhead",
    "max_autotune",
    "pointwise_tuning",
    "compile_liger",
)
BACKENDS: tuple[Backend, ...] = tuple(import_module(f"core.backends.{name}").BACKEND for name in FILES)

__all__ = ["BACKENDS", "Backend"]
