"""Stacks with runs that are damaged, incomplete or hostile: one sentence each, and the sound ones stay on screen."""

import json

import pytest

from core.store.manifest import Device, NumericError, Samples
from core.store.runfile import pack
from core.store.store import Store
from core.ui import session
from tests.runs import manifest, one_kernel_a_step, trace_bytes
from tests.ui.test_pages import explore, texts, viewing_only  # noqa: F401  # the fixture belongs to every page test

LINEAR = {"layer": "linear", "batch": 77}
HOSTILE = "<a href='http://evil.example'>x</a>\r\r# BIG"


def added(home, run_id, backend, trace=None, **changes):
    one = manifest(run_id, fields={**LINEAR, "backend": backend}, **changes)
    Store(home).add(pack(one, trace if trace is not None else trace_bytes(one_kernel_a_step()), {}))


def shown(page):
    assert not page.exception
    assert not any("Sorry" in text for text in texts(page, "error")), texts(page)
    return " ".join(texts(page))


def test_a_damaged_trace_takes_only_its_own_lane_away(home):
    added(home, "good", "eager")
    added(home, "bad", "compile", trace=b"not gzip, not json")
    page = explore(**LINEAR, backend="eager,compile")
    assert "torch.compile: the trace of this run cannot be shown" in shown(page)
    assert len(json.loads(page.get("plotly_chart")[0].proto.spec)["layout"]["yaxis"]["ticktext"]) == 1


def test_a_run_whose_profile_has_no_kernels_has_no_lane_and_unknown_numbers(home):
    events = [event for event in one_kernel_a_step() if event["cat"] != "kernel"]
    added(home, "good", "eager")
    added(home, "blind", "compile", trace=trace_bytes(events))
    page = explore(**LINEAR, backend="eager,compile", focus="compile")
    assert "torch.compile: the profile of this run holds no work of its steps" in shown(page)
    metrics = {metric.label: (metric.value, metric.delta) for metric in page.metric}
    for label in ("Kernel time a step", "Kernels a step", "GPU busy"):
        assert metrics[label][0] == "unknown" and "no kernel" in metrics[label][1]


def test_kernels_of_no_step_leave_the_steps_numbers_unknown(home):
    events = one_kernel_a_step()
    for event in events:
        if event["cat"] == "kernel":
            event["args"].pop("correlation")
    added(home, "lost", "eager", trace=trace_bytes(events))
    page = explore(**LINEAR, backend="eager")
    assert "Overhead-bound" not in shown(page)
    assert {metric.label: metric.value for metric in page.metric}["Kernels a step"] == "unknown"


def test_a_file_that_vanishes_between_list_and_look_is_one_sentence(home):
    added(home, "there", "eager")
    added(home, "gone", "compile")
    page = explore(**LINEAR, backend="eager")
    gone = next((home / "runs").glob("gone*"))
    times = gone.parent.stat()
    gone.write_bytes(b"")
    import os

    os.utime(gone.parent, ns=(times.st_atime_ns, times.st_mtime_ns))
    page.multiselect(key="pick:backends").set_value(["eager", "compile"]).run()
    shown(page)
    assert page.header[0].value.startswith("nn.Linear: Eager")


def test_wrong_results_are_infinite_in_the_table_and_left_out_of_the_remarks(home):
    added(home, "right", "eager", errors=(NumericError("output", 2e-3, 0.1),))
    broken = (NumericError("output", 2e-3, 0.1), NumericError("gradient of x", None, None, finite=False))
    added(home, "wrong", "compile", errors=broken)
    page = explore(**LINEAR, backend="eager,compile")
    assert "torch.compile: compared with none of the others, for what was computed is not the layer." in shown(page)
    assert list(page.dataframe[0].value["error"]) == [2e-3, float("inf")]


@pytest.mark.parametrize("backend", ["eager", "compile"])
def test_names_are_text_in_charts(home, backend):
    events = one_kernel_a_step()
    for event in events:
        event["name"] = HOSTILE if event["cat"] in ("kernel", "cpu_op") else event["name"]
    device = Device(kind="gpu", name=HOSTILE, driver=HOSTILE)
    for one in ("eager", "compile"):
        added(home, one, one, trace=trace_bytes(events), device=device, versions={"torch": HOSTILE, HOSTILE: HOSTILE},
              step_us=Samples("us", HOSTILE, (5.0, 6.0)))  # fmt: skip
    page = explore(**LINEAR, backend="eager,compile", focus=backend)
    shown(page)
    for chart in page.get("plotly_chart"):
        assert "<a href" not in chart.proto.spec and "\\u003ca href" not in chart.proto.spec
    for element in (*page.markdown, *page.caption):
        assert "\r" not in element.value


def test_a_step_beyond_the_last_is_the_second_in_chart_and_words():
    page = explore(layer="geglu_mlp", backend="eager,compile", step=500)
    assert any("Step 2 is shown" in text for text in texts(page, "warning"))
    note = json.loads(page.get("plotly_chart")[0].proto.spec)["layout"]["annotations"][0]["text"]
    assert "step 2 of 20" in note


def test_four_backends_keep_their_pickers():
    page = explore(layer="geglu_mlp", backend="eager,compile,liger,compile_dynamic")
    assert len(page.query_params["run"]) > 200
    page.text_input(key="pick:batch").set_value("16").run()
    assert page.text_input(key="pick:batch").value == "16"
    assert not page.warning


def test_a_link_of_runs_alone_stacks_them(home):
    added(home, "one", "eager")
    added(home, "two", "compile")
    page = explore(run="one,two")
    assert page.header[0].value == "nn.Linear: Eager · torch.compile"
    assert page.query_params["run"] == "one,two"
    assert not page.warning


def test_the_nearest_run_may_be_of_a_layer_that_lacks_the_picked_backend(home, monkeypatch, tmp_path):
    own = Store(home, tmp_path / "no recordings")
    own.add(pack(manifest("only", fields=LINEAR), trace_bytes(one_kernel_a_step()), {}))
    monkeypatch.setattr(session, "store", lambda: own)
    page = explore(layer="rms_norm", backend="eager,liger")
    assert "Not run yet" in shown(page)
    assert page.header[0].value == "nn.Linear: Eager"
