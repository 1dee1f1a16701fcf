"""A model's config.json as a pick: which gated MLP it has, and how wide. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from core.workload import SIZE_MAX, WorkloadError, whole

_SWIGLU = frozenset({"silu", "swish", "swiglu"})
_GEGLU = frozenset({"gelu", "gelu_pytorch_tanh", "gelu_tanh", "gelu_new", "gelu_fast", "geglu", "gated-gelu"})
#: Widely used models whose configuration names a width and an activation, and whose MLP is not gated.
_PLAIN = frozenset(
    (
        "gpt2",
        "gpt_neo",
        "gpt_neox",
        "gptj",
        "bert",
        "roberta",
        "distilbert",
        "opt",
        "bloom",
        "falcon",
        "phi",
        "vit",
        "clip",
    )
)
_HIDDEN = ("hidden_size", "d_model", "n_embd", "dim")
_INTERMEDIATE = ("intermediate_size", "ffn_hidden_size", "d_ff", "n_inner", "moe_intermediate_size")
_ACTIVATION = ("hidden_activation", "hidden_act", "activation_function", "feed_forward_proj", "mlp_hidden_act")
_DTYPES = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32"}
_TEXT_MAX = 1_000_000


@dataclass(frozen=True)
class ModelMlp:
    """The fields of a pick, and a sentence that says what was read."""

    fields: Mapping[str, str]
    told: str


def mlp_of(text: str) -> ModelMlp:
    """The MLP that a model's config.json describes. Raises WorkloadError, one sentence, where it describes none."""
    config = _parsed(text)
    name = _name(config)
    own = config.get("text_config")
    if isinstance(own, Mapping):  # a model of text and pictures keeps its language part inside
        config = {**config, **own}
    kind = str(config.get("model_type", "")).lower()
    if kind in _PLAIN:
        raise WorkloadError(
            f"The MLP of {name} is not gated, and only gated ones are here; choose the layer and sizes yourself."
        )
    hidden = _size(config, "the model's width", _HIDDEN)
    intermediate = _size(config, "the width between the projections", _INTERMEDIATE)
    activation = _first(config, _ACTIVATION)
    if activation is None:
        raise WorkloadError(f"The config.json of {name} names no activation (hidden_act); choose the layer yourself.")
    layer = _layer(str(activation).lower(), name)
    dtype = _DTYPES.get(str(config.get("torch_dtype", config.get("dtype", ""))))
    fields = {
        "layer": layer,
        "hidden": str(hidden),
        "intermediate": str(intermediate),
        **({"dtype": dtype} if dtype else {}),
    }
    experts = ", one expert of its mixture" if any("experts" in key for key in config) else ""
    exact = "; exact GELU is run as its tanh form" if activation == "gelu" else ""
    return ModelMlp(fields, f"{name}: hidden {hidden:,}, intermediate {intermediate:,}, {activation}{experts}{exact}.")


def _parsed(text: str) -> dict[str, Any]:
    if len(text) > _TEXT_MAX:
        raise WorkloadError("This text is far longer than any config.json; paste that file alone.")
    try:
        config = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise WorkloadError("This is not JSON; paste the whole config.json of a model, from { to }.") from error
    if not isinstance(config, dict):
        raise WorkloadError("This JSON is not an object; paste the whole config.json of a model, from { to }.")
    return config


def _layer(activation: str, name: str) -> str:
    if activation in _SWIGLU:
        return "swiglu_mlp"
    if activation in _GEGLU:
        return "geglu_mlp"
    raise WorkloadError(f"{name} uses the activation {activation[:40]!r}; the gated MLPs here have SiLU or GELU.")


def _size(config: Mapping[str, Any], what: str, keys: tuple[str, ...]) -> int:
    value = _first(config, keys)
    if value is None:
        raise WorkloadError(f"The config.json does not say {what} ({keys[0]}); choose the sizes yourself.")
    return whole(keys[0], value, 1, SIZE_MAX)


def _first(config: Mapping[str, Any], keys: tuple[str, ...]) -> Any:
    return next((config[key] for key in keys if config.get(key) is not None), None)


def _name(config: Mapping[str, Any]) -> str:
    found = config.get("_name_or_path") or config.get("model_type") or "This model"
    return str(found)[:80]
