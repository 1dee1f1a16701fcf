"""A model's config.json as a pick: which gated MLP it has, and how wide. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from core.workload import SIZE_MAX, WorkloadError, whole

_SWIGLU = frozenset({"silu", "swish", "swiglu"})
_GEGLU = frozenset({"gelu", "gelu_pytorch_tanh", "gelu_tanh", "gelu_new", "gelu_fast", "geglu", "gated-gelu"})
#: Model types whose MLP is gated. Of others an activation of SiLU is taken to mean so; GELU is used both ways.
_GATED = frozenset(
    ("llama", "mistral", "mixtral", "qwen2", "qwen2_moe", "qwen3", "qwen3_moe", "gemma", "gemma2", "gemma3", "gemma3_text",
     "phi3", "granite", "olmo", "olmo2", "cohere", "cohere2", "deepseek_v2", "deepseek_v3", "glm", "glm4", "smollm3",
     "internlm2", "exaone", "minicpm", "stablelm")
)  # fmt: skip
_HIDDEN = ("hidden_size", "d_model", "n_embd", "dim")
_INTERMEDIATE = ("intermediate_size", "ffn_hidden_size", "d_ff", "n_inner")
_EXPERTS = ("num_experts", "num_local_experts", "n_routed_experts")
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
    hidden = _size(config, "the model's width", _HIDDEN)
    experts = _first(config, _EXPERTS)
    is_mixture = isinstance(experts, int) and experts > 1
    widths = ("moe_intermediate_size", *_INTERMEDIATE) if is_mixture else _INTERMEDIATE
    intermediate = _size(config, "the width between the projections", widths)
    activation = _first(config, _ACTIVATION)
    if activation is None:
        raise WorkloadError(f"The config.json of {name} names no activation (hidden_act); choose the layer yourself.")
    word = str(activation).lower()
    layer = _layer(word, name)
    kind = str(config.get("model_type", "")).lower()
    if layer == "geglu_mlp" and kind not in _GATED and word not in ("geglu", "gated-gelu"):
        raise WorkloadError(
            f"Whether the MLP of {name} is gated cannot be told from this config.json; choose the layer and sizes yourself."
        )
    dtype = _DTYPES.get(str(config.get("torch_dtype", config.get("dtype", ""))))
    fields = {
        "layer": layer,
        "hidden": str(hidden),
        "intermediate": str(intermediate),
        **({"dtype": dtype} if dtype else {}),
    }
    told = [f"{name[0].upper()}{name[1:]}: hidden {hidden:,}, intermediate {intermediate:,}, {word}"]
    told += ["one expert of its mixture"] if is_mixture else []
    told += [] if kind in _GATED or word in ("geglu", "gated-gelu", "swiglu") else ["taken to be gated"]
    exact = "; exact GELU is run as its tanh form" if word == "gelu" else ""
    return ModelMlp(fields, f"{', '.join(told)}{exact}.")


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
    found = config.get("_name_or_path") or config.get("model_type") or "this model"
    return str(found)[:80]
