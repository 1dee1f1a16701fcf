"""The layers that can be run: one file each. A new one is its file and its line in LAYERS."""

from core.layers import geglu_mlp, linear
from core.layers.spec import Cost, Flag, Layer, Preset, Size

LAYERS: tuple[Layer, ...] = (
    linear.LAYER,
    geglu_mlp.LAYER,
)

__all__ = ["LAYERS", "Cost", "Flag", "Layer", "Preset", "Size"]
