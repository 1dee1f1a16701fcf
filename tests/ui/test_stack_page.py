"""Explore with several backends: stacks, recorded sizes, model configurations, and what is told before any speed."""

import json
import re

import pytest

from core.store.manifest import Device, NumericError, Samples
from core.store.runfile import pack
from core.store.store import Store
from tests.runs import H200, manifest, one_kernel_a_step, run_file, trace_bytes
from tests.ui.test_pages import explore, texts, viewing_only  # noqa: F401  # the fixture belongs to every page test

LINEAR = {"layer": "linear", "batch": 77}


def stack_of(page):
    return json.loads(page.get("plotly_chart")[0].proto.spec)


def added(home, run_id, backend, **changes):
    one = manifest(run_id, fields={**LINEAR, "backend": backend}, **changes)
    Store(home).add(pack(one, trace_bytes(one_kernel_a_step()), {}))
    return one


def test_a_lane_a_backend_a_colour_a_role():
    page = explore(layer="swiglu_mlp", backend="eager,compile,liger,compile_dynamic")
    assert not page.exception
    figure = stack_of(page)
    names = {trace["name"]: trace["marker"]["color"] for trace in figure["data"] if trace["type"] == "bar"}
    assert {"gate", "up", "activation", "down"} <= set(names)
    assert len(set(names.values())) == len(names)
    lanes = figure["layout"]["yaxis"]["ticktext"]
    assert [re.sub(r"<.*?>", " ", lane).split("  ")[0].strip() for lane in lanes] == [
        "Eager", "torch.compile", "Liger kernels", "compile, dynamic=True",
    ]  # fmt: skip
    assert "NVIDIA H200" in figure["layout"]["annotations"][0]["text"], (
        "a picture that leaves the page says where it is from"
    )


def test_a_fifth_backend_and_one_the_layer_lacks_are_told():
    page = explore(layer="geglu_mlp", backend="eager,compile,liger,compile_dynamic,compile_static")
    assert any("5 backends; the first 4" in text for text in texts(page, "warning"))
    page = explore(layer="linear", backend="eager,liger")
    assert page.header[0].value == "nn.Linear: Eager"
    assert any("the backend 'liger'" in text for text in texts(page, "warning"))


def test_what_is_missing_of_a_stack_is_named_and_the_rest_is_shown(home):
    added(home, "mine", "eager")
    page = explore(**LINEAR, backend="eager,compile")
    assert page.header[0].value == "nn.Linear: Eager"
    assert any("Not run yet, as picked: torch.compile" in text for text in texts(page, "caption"))
    assert page.query_params["run"] == "mine"


def test_runs_of_one_device_stand_side_by_side_at_a_time(home):
    cpu = Device(kind="cpu", name="Some CPU", cores=2)
    added(home, "gpu", "eager")
    added(home, "gpu-2", "compile")
    added(home, "cpu", "compile", device=cpu)
    page = explore(**LINEAR, backend="eager,compile")
    assert page.query_params["run"] == "gpu,gpu-2"
    choice = next(one for one in page.segmented_control if one.label == "Measured on")
    assert choice.options == ["NVIDIA H200 (2 of 2)", "Some CPU (1 of 2)"]
    choice.set_value("Some CPU").run()
    assert page.query_params["run"] == "cpu"
    assert any("Not run yet on Some CPU, as picked: Eager" in text for text in texts(page, "caption"))


def test_a_run_that_computed_something_else_is_told_before_its_speed(home):
    added(home, "right", "eager", errors=(NumericError("output", 2e-3, 0.1),))
    added(home, "wrong", "compile", errors=(NumericError("gradient of weight", 1.4, 3.0),))
    page = explore(**LINEAR, backend="eager,compile")
    assert [text for text in texts(page, "error") if "did not compute the layer" in text] == [
        "torch.compile: The gradient of weight is 1.4 away from eager fp32, more than the 0.02 that bf16 explains: this run "
        "did not compute the layer, whatever its speed."
    ]


def test_recorded_sizes_are_one_pick_away():
    page = explore(layer="geglu_mlp", batch=63)
    box = page.selectbox(key="pick:recorded")
    assert box.value is None
    wanted = next(option for option in box.options if option.startswith("16 × 128 × 1,024"))
    box.select(wanted).run()
    assert not page.exception
    assert page.text_input(key="pick:batch").value == "16"
    assert not any("Not run yet" in text for text in texts(page, "warning"))


def test_the_runs_of_a_link_and_the_focus_are_taken(home):
    Store(home).add(run_file("mine-1"))
    page = explore(layer="linear", backend="eager,compile", run="mine-1", focus="compile")
    assert page.query_params["run"].split(",")[0] == "mine-1"
    assert page.segmented_control(key="explore:focus").value == "compile"
    page.segmented_control(key="explore:focus").set_value("eager").run()
    assert page.query_params["focus"] == "eager"


def test_a_model_configuration_becomes_a_pick():
    page = explore()
    config = {"hidden_size": 4096, "intermediate_size": 14336, "hidden_act": "silu", "model_type": "llama"}
    page.text_area(key="pick:config").set_value(json.dumps(config)).run()
    page.button(key="pick:take-config").click().run()
    assert not page.exception
    assert page.selectbox(key="pick:layer").value == "swiglu_mlp"
    assert page.text_input(key="pick:intermediate").value == "14336"
    page.text_area(key="pick:config").set_value("{").run()
    page.button(key="pick:take-config").click().run()
    assert any("This is not JSON" in text for text in texts(page, "caption"))
    assert page.text_input(key="pick:intermediate").value == "14336"


def test_a_run_at_held_down_clocks_is_shown_as_such_and_a_better_one_first(home):
    held = manifest().window_clocks
    assert held == ()
    from core.store.manifest import ClockSample

    slow = (ClockSample(0.0, 1500, 2600, 700.0, 60, 0x4),)
    added(home, "slow", "eager", window_clocks=slow)
    page = explore(**LINEAR, backend="eager")
    assert page.query_params["run"] == "slow"
    assert any("clocks held down" in text for text in texts(page, "markdown"))
    added(home, "good", "eager", device=H200, step_us=Samples("us", "device events", (9.0, 9.0, 9.0)))
    assert explore(**LINEAR, backend="eager").query_params["run"] == "good"


@pytest.mark.parametrize("layer", ["rms_norm", "layer_norm", "softmax", "cross_entropy", "matmul_add", "linear"])
@pytest.mark.parametrize("passes", ["fwd", "fwd_bwd"])
def test_every_layer_stacks_from_its_recordings(layer, passes):
    backends = "eager,compile" if layer in ("linear", "matmul_add") else "eager,compile,liger"
    page = explore(layer=layer, backend=backends, passes=passes)
    assert not page.exception
    assert not page.warning, texts(page, "warning")
    figure = stack_of(page)
    assert len(figure["layout"]["yaxis"]["ticktext"]) == len(backends.split(","))


def test_the_run_that_was_asked_for_last_decides_the_device(home):
    cpu = Device(kind="cpu", name="Some CPU", cores=2)
    for backend in ("eager", "compile"):
        added(home, f"gpu-{backend}", backend)
    added(home, "cpu-compile", "compile", device=cpu)
    page = explore(**LINEAR, backend="eager,compile", run="gpu-eager,gpu-compile")
    assert page.query_params["run"] == "gpu-eager,gpu-compile"
    page.query_params["run"] = "gpu-eager,cpu-compile"
    page.run()
    assert page.query_params["run"] == "cpu-compile"


def test_a_preset_of_another_backend_brings_it_along():
    page = explore(layer="rms_norm", backend="eager,compile")
    page.selectbox(key="pick:preset").set_value("03_kernels_mlp").run()
    assert page.selectbox(key="pick:preset").value == "03_kernels_mlp"
    assert page.multiselect(key="pick:backends").value == ["liger", "eager", "compile"]


def test_what_a_link_had_wrong_is_told_until_something_else_is_picked():
    page = explore(layer="geglu_mlp", backend="eager,foo")
    assert any("the backend 'foo'" in text for text in texts(page, "warning"))
    page.selectbox(key="pick:layer").set_value("rms_norm").run()
    assert not page.warning


def test_step_and_focus_of_a_later_link_are_taken_up():
    page = explore(layer="geglu_mlp", backend="eager,compile", focus="compile", step=3)
    assert page.segmented_control(key="explore:focus").value == "compile"
    page.query_params["focus"], page.query_params["step"] = "eager", "5"
    page.run()
    assert page.segmented_control(key="explore:focus").value == "eager"
    picker = next(box for box in page.selectbox if box.label.startswith("Step (of"))
    assert picker.value == "5"
    assert page.query_params["step"] == "5"


def test_a_link_of_a_run_that_is_nowhere_opens_the_first_view():
    page = explore(run="nonsense")
    assert page.header[0].value == "Gated MLP (GEGLU): Eager · torch.compile · Liger kernels"
    assert any("The run nonsense is not on this machine" in text for text in texts(page, "warning"))
