"""Which sweeps the project ships recordings of."""

from __future__ import annotations

from collections.abc import Sequence

from core.sweep import Sweep, make_sweep

#: Ten batches and two of them again: dynamic=False hits its limit of eight on the way.
_BATCHES = (64, 32, 16, 1, 2, 4, 8, 3, 96, 128, 64, 1)
_SEQS = (128, 256, 64, 77, 197, 384, 512, 1000, 1, 128)
_HIDDEN = (768, 1024, 1536, 2048, 2304, 2560, 3072, 3584, 4096, 5120)
#: Powers of two among the widths of well-known models.
_WIDTHS = (3072, 4096, 5632, 8192, 8960, 11008, 12288, 13824, 14336, 16384)
_MAP_BATCHES = (1, 2, 4, 8, 16, 32, 64, 128)
#: Enough for a spread; a trace of more would only be larger.
_STEPS, _MAP_STEPS = 6, 4
_MAP_WIDTHS = (3072, 4096, 8192, 8960, 11008, 13824, 14336, 16384)
#: A day of a small service as a log gives it: batch, sequence, how often.
_TRAFFIC = """
    8,512,41000; 8,384,23000; 4,512,18000; 16,128,15200; 8,77,9800; 1,1000,7400; 2,640,6900; 8,513,5200; 12,200,4400
    3,900,3100; 16,64,2600; 1,33,2100; 6,450,1800; 24,128,900; 32,512,240; 64,512,35
"""


def shipped_sweeps() -> tuple[Sweep, ...]:
    """The whole set, the article's layer first."""
    found = [*_gated("geglu_mlp"), _map("geglu_mlp"), *_gated("swiglu_mlp"), *_linear()]
    found.append(
        make_sweep(
            {
                "kind": "traffic",
                "layer": "geglu_mlp",
                "rows": _TRAFFIC,
                "steps": _STEPS,
                "backends": "eager,compile,compile_dynamic,liger,reduce_overhead",
            }
        )
    )
    found.append(_sweep("geglu_mlp", "batch", (64, 32, 16, 64), "eager,compile,reduce_overhead,max_autotune"))
    return tuple(found)


def _gated(layer: str) -> list[Sweep]:
    compared = "eager,compile,compile_dynamic,compile_static,liger,reduce_overhead"
    wide = {"hidden": 2048, "batch": 64}
    return [
        _sweep(layer, "batch", _BATCHES, compared),
        _sweep(layer, "seq", _SEQS, "eager,compile,compile_dynamic,liger", batch=16),
        _sweep(layer, "hidden", _HIDDEN, "eager,compile,liger", batch=16),
        _sweep(layer, "intermediate", _WIDTHS, "eager,compile,liger,compile_liger", mode="isolated", **wide),
        _sweep(layer, "intermediate", _WIDTHS, "eager,compile,liger", **wide),
    ]


def _map(layer: str) -> Sweep:
    return make_sweep(
        {
            "kind": "map",
            "layer": layer,
            "axis": "batch",
            "values": _listed(_MAP_BATCHES),
            "axis2": "intermediate",
            "values2": _listed(_MAP_WIDTHS),
            "steps": _MAP_STEPS,
            "hidden": 2048,
            "backends": "eager,compile,liger",
        }
    )


def _linear() -> list[Sweep]:
    rows = tuple(128 * batch for batch in _BATCHES)
    return [
        _sweep(
            "linear", "batch", rows, "eager,compile,compile_dynamic,compile_static", in_features=768, out_features=3072
        ),
        _sweep("linear", "in_features", _HIDDEN, "eager,compile", batch=8192, out_features=3072),
        _sweep("linear", "out_features", _WIDTHS, "eager,compile", batch=8192, in_features=2048),
    ]


def _sweep(layer: str, axis: str, values: Sequence[int], backends: str, **fields: object) -> Sweep:
    return make_sweep(
        {"layer": layer, "axis": axis, "values": _listed(values), "backends": backends, "steps": _STEPS, **fields}
    )


def _listed(values: Sequence[int]) -> str:
    return ",".join(map(str, values))
