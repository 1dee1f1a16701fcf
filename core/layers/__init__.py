"""The layers that can be run: one file each. A new one is its file and its name in FILES."""

from importlib import import_module

from core.layers.spec import Cost, Flag, Layer, Preset, Size

FILES = (
    "linear",
    "matmul_add",
    "geglu_mlp",
    "swiglu_mlp",
    "rms_norm",
    "layer_norm",
    "softmax",
    "cross_entropy",
)
LAYERS: tuple[Layer, ...] = tuple(import_module(f"core.layers.{name}").LAYER for name in FILES)

__all__ = ["LAYERS", "Cost", "Flag", "Layer", "Preset", "Size"]
