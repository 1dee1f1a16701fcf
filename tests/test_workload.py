"""Workloads: every bad field gives one sentence, and a link's fields make the same workload again."""

import pytest

from core.backends import BACKENDS
from core.estimate import Rates, check_fits, estimate, warning
from core.layers import LAYERS
from core.workload import (
    WorkloadError,
    backend_of,
    cost_of,
    from_preset,
    make,
    presets,
    to_fields,
    with_changes,
)

RATES = Rates({"bf16": 1e12, "fp16": 1e12, "fp32": 1e11}, 1e11, 2.0, 1_000_000_000)


def test_the_articles_mlp():
    workload = from_preset("03_simple_mlp")
    assert workload.sizes == (("batch", 64), ("seq", 128), ("hidden", 768), ("intermediate", 3072))
    assert (workload.dtype, workload.passes, workload.backend, workload.label) == ("bf16", "fwd", "eager", "mlp_fwd")
    assert from_preset("03_kernels_mlp").label == "kernels_mlp_fwd"
    assert cost_of(workload).flops == 3 * 2 * 8192 * 768 * 3072


@pytest.mark.parametrize(
    "bad",
    [
        "0",
        0,
        -1,
        "-5",
        "abc",
        "",
        "1e9",
        10**9,
        1.5,
        True,
        None,
        "9" * 400,
        "٣٤٥٦٧٨٩٠١٢",
        "12 34",
        "+",
        "nan",
        "--5",
        "+-5",
        "1,5",
        "1,0,0",
        "1_000",
        "⁵",
    ],
)
def test_a_bad_size_gives_one_sentence_that_names_it(bad):
    with pytest.raises(WorkloadError) as caught:
        make({"layer": "linear", "batch": bad})
    sentence = str(caught.value)
    assert sentence.startswith("Batch must be a whole number from 1 to 16,777,216")
    assert len(sentence) < 140
    assert "\n" not in sentence


@pytest.mark.parametrize("good", [7, "7", " 7 ", "+7", "0007"])
def test_sizes_as_people_write_them(good):
    assert make({"layer": "linear", "batch": good}).sizes[0] == ("batch", 7)
    assert make({"layer": "linear", "batch": "1,024"}).sizes[0] == ("batch", 1024)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"layer": "transformer"}, "layer must be one of linear, matmul_add"),
        ({"backend": "tpu"}, "backend must be one of eager"),
        ({"layer": "linear", "backend": "liger"}, "nn.Linear has no Liger kernels version"),
        ({"dtype": "fp8"}, "dtype must be one of bf16"),
        ({"passes": "backward"}, "passes must be one of"),
        ({"bias": "maybe"}, "Bias must be on or off"),
        ({"steps": 0}, "Steps must be"),
        ({"steps": 100000}, "Steps must be"),
        ({"seed": -1}, "Seed must be"),
        ({"batchsize": 3}, "has no field 'batchsize'"),
        ({"layer": ["linear"]}, "layer must be one of"),
    ],
)
def test_other_bad_fields(fields, words):
    with pytest.raises(WorkloadError, match=words):
        make(fields)


def test_fields_make_the_same_workload_again():
    for _, preset in presets():
        for backend in BACKENDS:
            try:
                workload = from_preset(preset.name, backend=backend.name, passes="fwd_bwd", seed=3)
            except WorkloadError:
                continue
            again = make({name: str(value) for name, value in to_fields(workload).items()})
            assert again == workload
            assert again.key == workload.key


def test_keys_tell_workloads_apart():
    keys = {make({"layer": layer.name, "passes": passes}).key for layer in LAYERS for passes in ("fwd", "fwd_bwd")}
    assert len(keys) == 2 * len(LAYERS)


def test_changing_the_layer_drops_what_the_new_one_lacks():
    changed = with_changes(make({"layer": "linear", "bias": False, "dtype": "fp16"}), layer="geglu_mlp")
    assert changed == make({"layer": "geglu_mlp", "batch": 1024, "dtype": "fp16"})


def test_unknown_preset_names_the_known_ones():
    with pytest.raises(WorkloadError, match="choose one of 02_linear"):
        from_preset("99_nothing")


def test_estimates_grow_with_the_work_and_compiles_are_told():
    small, large = make({"layer": "geglu_mlp", "batch": 1}), make({"layer": "geglu_mlp", "batch": 64})
    assert estimate(small).memory_bytes < estimate(large).memory_bytes
    assert estimate(small).seconds is None
    assert estimate(small, RATES).seconds < estimate(large, RATES).seconds
    assert estimate(large, RATES).seconds < estimate(with_changes(large, passes="fwd_bwd"), RATES).seconds
    assert estimate(small, RATES).peak_bytes < estimate(small, RATES).memory_bytes
    compiled = estimate(with_changes(large, backend="compile"), RATES)
    assert compiled.compile_s == 6.0
    assert estimate(with_changes(large, backend="compile"), RATES, cold_compiles=1).compile_s == 2.0
    assert compiled.work_us < estimate(large, RATES).work_us, "a fused kernel moves fewer bytes"
    assert backend_of(small).compiles is False


def test_what_does_not_fit_is_said_before_it_runs():
    check_fits(make({"layer": "linear"}), RATES, "this GPU")
    with pytest.raises(WorkloadError, match=r"need about .* and this GPU has 1 GB for them; choose smaller sizes"):
        check_fits(make({"layer": "geglu_mlp", "batch": 16_000_000}), RATES, "this GPU")


def test_more_elements_than_32_bit_indices_reach_are_warned_of():
    assert warning(make({"layer": "softmax"})) is None
    told = warning(make({"layer": "softmax", "batch": 64, "seq": 8192, "columns": 4096}))
    assert "2,147,483,648" in told and "numeric error" in told


@pytest.mark.parametrize("layer", LAYERS, ids=lambda layer: layer.name)
def test_every_layers_cost_is_made_of_whole_positive_numbers(layer):
    for flags in (True, False):
        found = layer.cost({s.name: 3 for s in layer.sizes}, {f.name: flags for f in layer.flags}, 2)
        assert found.flops > 0 or found.moved_bytes > 0
        assert found.moved_bytes >= found.fused_moved_bytes >= 0
        assert found.largest_elements >= 9
        assert min(found.input_bytes, found.output_bytes) > 0 <= found.weight_bytes
        assert all(isinstance(value, int) for value in vars(found).values())
