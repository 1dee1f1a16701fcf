"""A model's config.json becomes a pick, and what it does not say ends in one sentence."""

import json

import pytest

from core.modelconfig import mlp_of
from core.workload import WorkloadError, make

LLAMA = {"model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336, "hidden_act": "silu"}
GEMMA = {
    "model_type": "gemma2",
    "hidden_size": 3584,
    "intermediate_size": 14336,
    "hidden_activation": "gelu_pytorch_tanh",
}


@pytest.mark.parametrize(
    ("config", "layer", "sizes"),
    [
        (LLAMA, "swiglu_mlp", (4096, 14336)),
        (GEMMA, "geglu_mlp", (3584, 14336)),
        ({"model_type": "gemma3", "text_config": GEMMA}, "geglu_mlp", (3584, 14336)),
        (
            {"d_model": 512, "d_ff": 1024, "feed_forward_proj": "gated-gelu", "model_type": "t5"},
            "geglu_mlp",
            (512, 1024),
        ),
    ],
)
def test_the_layer_and_the_widths_are_read(config, layer, sizes):
    found = mlp_of(json.dumps(config))
    workload = make(dict(found.fields))
    assert workload.layer == layer
    assert (dict(workload.sizes)["hidden"], dict(workload.sizes)["intermediate"]) == sizes


def test_the_number_format_and_experts_are_told():
    mixture = {"torch_dtype": "float16", "num_experts": 128, "moe_intermediate_size": 768, "model_type": "qwen3_moe"}
    found = mlp_of(json.dumps(LLAMA | mixture))
    assert found.fields["dtype"] == "fp16"
    assert found.told == "Qwen3_moe: hidden 4,096, intermediate 768, silu, one expert of its mixture."
    dense = mlp_of(json.dumps(LLAMA | {"num_experts": None, "moe_intermediate_size": 768}))
    assert dense.told == "Llama: hidden 4,096, intermediate 14,336, silu."


def test_a_gate_that_is_only_guessed_is_told():
    assert mlp_of(json.dumps(LLAMA | {"model_type": "new_model"})).told.endswith("silu, taken to be gated.")
    assert "its tanh form" in mlp_of(json.dumps(GEMMA | {"hidden_activation": "GELU"})).told


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "This is not JSON"),
        ("[" * 100_000, "This is not JSON"),
        ("[1]", "not an object"),
        ("x" * 2_000_000, "far longer"),
        (
            json.dumps({"model_type": "gpt2", "n_embd": 768, "n_inner": 3072, "activation_function": "gelu_new"}),
            "cannot be told",
        ),
        (json.dumps(LLAMA | {"model_type": "xlm-roberta", "hidden_act": "gelu"}), "cannot be told"),
        (json.dumps({key: value for key, value in LLAMA.items() if key != "hidden_act"}), "names no activation"),
        (json.dumps(LLAMA | {"hidden_act": "relu"}), "uses the activation 'relu'"),
        (json.dumps({"hidden_act": "silu"}), "does not say the model's width"),
        (json.dumps(LLAMA | {"hidden_size": "wide"}), "must be a whole number"),
        (json.dumps(LLAMA | {"intermediate_size": [1]}), "must be a whole number"),
        (json.dumps(LLAMA | {"hidden_size": -3}), "must be a whole number"),
    ],
)
def test_what_it_does_not_say_ends_in_one_sentence(text, words):
    with pytest.raises(WorkloadError, match=words):
        mlp_of(text)
