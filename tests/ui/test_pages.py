"""The pages on recordings alone: first view, links, bad input. No worker runs here; test_live_page.py has those."""

import json
import re
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from core.analysis.spread import Spread
from core.store.manifest import (
    Compile,
    Device,
    Failure,
    KernelSource,
    NumericError,
    Samples,
    TunedKernel,
)
from core.store.runfile import pack
from core.store.store import RECORDINGS, Store
from core.ui import session
from core.workload import from_preset, to_fields
from tests.runs import manifest, one_kernel_a_step, run_file, trace_bytes

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def viewing_only(home, monkeypatch):
    """A small install with a store of its own."""
    monkeypatch.setattr(session, "can_run", lambda: False)
    shared = (session.store, session._tables)
    for cache in shared:
        cache.clear()
    yield
    for cache in shared:
        cache.clear()


def explore(**link):
    page = AppTest.from_file(str(ROOT / "app.py"), default_timeout=30).switch_page("pages/1_Explore.py")
    for name, value in link.items():
        page.query_params[name] = str(value)
    return page.run()


def raw(page, *kinds):
    """The Markdown of every sentence on the page."""
    kinds = kinds or ("header", "subheader", "markdown", "caption", "warning", "error", "info")
    return [element.value for kind in kinds for element in getattr(page, kind)]


def texts(page, *kinds):
    """Every sentence as it reads, with nothing escaped."""
    return [re.sub(r"\\(.)", r"\1", text).replace("\u2060", "") for text in raw(page, *kinds)]


def timeline_of(page):
    """The timeline's figure: a stack of several runs stands above it."""
    at = 1 if any(heading.value == "One step, side by side" for heading in page.subheader) else 0
    return json.loads(page.get("plotly_chart")[at].proto.spec)


def bars(page):
    figure = timeline_of(page)
    return [custom for trace in figure["data"] if trace["type"] == "bar" for custom in trace["customdata"]]


def kernels(page):
    return [custom[1] for custom in bars(page) if custom[4] == "gpu" and "Memset" not in custom[1]]


def test_the_first_view_is_the_articles_mlp():
    page = explore()
    assert not page.exception
    assert page.header[0].value == "Gated MLP (GEGLU): Eager · torch.compile · Liger kernels"
    assert not page.warning
    remarks = [text for text in texts(page, "markdown") if re.match(r"\*\*[123]\.\*\* ", text)]
    assert "The 3 matrix products run as the same kernels everywhere" in remarks[0]
    assert "gate and up share one kernel" in remarks[0]
    assert re.search(r"Eager 2 kernels .* torch.compile 1 kernel .* cold compiles.* Liger kernels 1 kernel", remarks[1])
    assert re.match(r"\*\*3\.\*\* \d\d% of Eager's GPU work is no matrix product", remarks[2])
    metrics = {metric.label: metric.value for metric in page.metric}
    assert metrics["Kernels a step"] == "5"
    assert metrics["Kernel time a step"].endswith("µs")
    assert len(page.get("plotly_chart")) == 3
    assert page.query_params["backend"] == "eager,compile,liger"
    assert len(page.query_params["run"].split(",")) == 3


@pytest.mark.parametrize(
    ("preset", "backend", "count"),
    [
        ("03_simple_mlp", "eager", 5),
        ("03_simple_mlp", "compile", 4),
        ("03_kernels_mlp", "liger", 4),
        ("02_linear", "eager", 1),
    ],
)
def test_the_timeline_of_one_step_holds_the_articles_kernels(preset, backend, count):
    page = explore(
        **{k: "on" if v is True else v for k, v in to_fields(from_preset(preset, backend=backend)).items()}, step=3
    )
    assert not page.exception
    names = kernels(page)
    assert len(set(names)) <= count <= len(names)
    assert {metric.label: metric.value for metric in page.metric}["Kernels a step"] == str(count)
    if preset == "02_linear":
        assert "bias" in names[0]


def test_the_gemms_are_the_same_on_every_backend():
    gemms = [
        {name for name in kernels(explore(layer="geglu_mlp", backend=backend, step="all")) if "nvjet" in name}
        for backend in ("eager", "compile", "liger")
    ]
    assert len(gemms[0]) == 2
    assert gemms[0] == gemms[1] == gemms[2]


def test_the_spread_over_compiles_is_said_beside_the_number():
    page = explore(layer="geglu_mlp", backend="compile")
    said = " ".join(texts(page))
    assert "Kernel time a step over 7 cold compiles" in said
    assert "cold compiles" in " ".join(texts(page, "markdown"))
    across = next(table for table in page.dataframe if "across" in table.value)
    assert any(isinstance(value, str) and "7 compiles" in value for value in across.value["across"])


@pytest.mark.parametrize(
    ("link", "words"),
    [
        ({"batch": "0"}, "Batch must be a whole number"),
        ({"batch": "-3"}, "Batch must be a whole number"),
        ({"batch": "many"}, "Batch must be a whole number"),
        ({"batch": "1000000000"}, "Batch must be a whole number"),
        ({"layer": "transformer"}, "The link asks for layer 'transformer'"),
        ({"backend": "tpu"}, "The link asks for the backend 'tpu'"),
        ({"layer": "linear", "backend": "liger"}, "nn.Linear can run on eager, compile"),
        ({"dtype": "fp8"}, "The link asks for dtype 'fp8'"),
        ({"passes": "sideways"}, "The link asks for passes 'sideways'"),
        ({"layer": "linear", "bias": "perhaps"}, "The link says bias 'perhaps'"),
        ({"steps": "none"}, "Steps must be a whole number"),
        ({"run": "no-such-run"}, "The run no-such-run is not on this machine"),
        ({"batch": "--5"}, "Batch must be a whole number"),
        ({"batch": "1,5"}, "Batch must be a whole number"),
        ({"step": "0"}, "a step is a number from 1 on"),
        ({"step": "abc"}, "a step is a number from 1 on"),
        ({"step": "999"}, "has no step 999"),
    ],
)
def test_a_bad_link_gives_one_sentence_and_still_a_chart(link, words):
    page = explore(**link)
    assert not page.exception
    assert any(words in text for text in texts(page, "warning")), texts(page)
    assert page.get("plotly_chart")


@pytest.mark.parametrize("bad", ["0", "-1", "word", "1000000000", "", "1.5"])
def test_a_bad_size_in_a_picker_keeps_the_last_chart(bad):
    page = explore()
    before = bars(page)
    page.text_input(key="pick:batch").set_value(bad).run()
    assert not page.exception
    assert any("Batch must be a whole number" in text for text in texts(page, "warning"))
    assert bars(page) == before
    page.text_input(key="pick:batch").set_value("64").run()
    assert not page.warning


def test_sizes_nobody_ran_lead_to_the_nearest_runs():
    page = explore(layer="geglu_mlp", batch=63)
    assert any("Not run yet" in text for text in texts(page, "warning"))
    assert "run" not in page.query_params
    assert any("small install" in text for text in texts(page, "caption"))
    assert page.get("plotly_chart")


def test_changing_layer_and_preset_changes_the_run():
    page = explore()
    page.selectbox(key="pick:layer").set_value("linear").run()
    assert page.header[0].value == "nn.Linear: Eager · torch.compile", "a backend that the layer lacks falls away"
    assert page.query_params["layer"] == "linear"
    page.multiselect(key="pick:backends").set_value(["compile"]).run()
    assert page.header[0].value == "nn.Linear: torch.compile"
    page.selectbox(key="pick:preset").set_value("03_kernels_mlp").run()
    assert page.header[0].value == "Gated MLP (GEGLU): Liger kernels · torch.compile"
    page.multiselect(key="pick:backends").set_value([]).run()
    assert page.header[0].value == "Gated MLP (GEGLU): Eager", "no backend at all means the first"
    assert not page.exception


def test_a_click_lights_the_launch_and_the_operator():
    page = explore(layer="linear", backend="eager", step=2)
    row = next(custom[0] for custom in bars(page) if custom[4] == "gpu")
    run = page.query_params["run"]
    page.session_state[f"timeline:picked:{run}:3"] = row  # the profiler's number of the second step
    page.run()
    figure = timeline_of(page)
    assert any(trace.get("name") == "joins" for trace in figure["data"])
    lit = [c[1] for t in figure["data"] if t["type"] == "bar" and t["marker"]["opacity"] == 1 for c in t["customdata"]]
    assert sorted(name.split("_")[0] for name in lit) == ["aten::addmm", "cuLaunchKernelEx", "nvjet"]
    assert any("launched by" in text for text in texts(page, "markdown"))


def test_two_runs_of_a_workload_can_both_be_seen(home):
    Store(home).add(run_file("mine-1"))
    page = explore(layer="linear")
    picker = next(box for box in page.selectbox if box.label.startswith("Runs of this workload"))
    assert picker.label == "Runs of this workload (2)"
    picker.set_value("mine-1").run()
    assert page.query_params["run"] == "mine-1"
    assert any("Live on NVIDIA H200" in text for text in texts(page, "markdown"))


#: Markdown that would do something: not escaped by a backslash.
ALIVE = re.compile(r"(?<!\\)(?:!\[|\]\(http|\$x|:red\[|<b>|\*\*s)")
HOSTILE = "![x](http://127.0.0.1:9/x.png) [press](http://evil.example) $x^2$ `b` :red[r] <b>h</b> **s**"


@pytest.mark.parametrize("field", ["run", "batch", "layer", "backend", "steps", "step", "dtype"])
def test_what_a_link_says_is_shown_as_it_is(field):
    page = explore(**{field: HOSTILE})
    assert not page.exception
    assert page.warning
    for text in raw(page):
        assert not ALIVE.search(text), text


def test_what_a_strangers_run_says_is_shown_as_it_is(home):
    device = Device(kind="gpu", name=HOSTILE, driver=HOSTILE)
    kernel = TunedKernel(HOSTILE, HOSTILE, (), None, None, Spread(3, 2.0, 1.0, 3.0, 1.5, 2.5))
    stranger = manifest(
        "stranger",
        fields={"layer": "linear", "backend": "compile", "batch": 77},
        device=device,
        versions={"torch": HOSTILE, HOSTILE: HOSTILE},
        step_us=Samples("us", HOSTILE, (1.0, 2.0)),
        graph_replay_why=HOSTILE,
        errors=(NumericError(HOSTILE, 1.0, 1.0),),
        compiles=(Compile("warm", True, 1.0, {}, (kernel,), None, shown=True),),
        sources=(KernelSource(HOSTILE, "triton", (HOSTILE,), (HOSTILE,)),),
        notes=(HOSTILE,),
    )
    events = one_kernel_a_step()
    events[1]["name"] = events[3]["name"] = HOSTILE
    Store(home).add(pack(stranger, trace_bytes(events), {f"{HOSTILE}.py": "x = 1"}))
    page = explore(layer="linear", backend="compile", batch=77)
    assert not page.exception
    assert page.query_params["run"] == "stranger"
    outside_code = [re.sub(r"(`+).*?\1", "", text) for text in raw(page)]
    labels = [box.label for box in page.expander] + [metric.delta for metric in page.metric]
    for text in [*outside_code, *labels]:
        assert not ALIVE.search(text), text


def test_a_damaged_trace_is_told_and_the_rest_is_shown(home):
    Store(home).add(pack(manifest("hurt", fields={"layer": "linear", "batch": 78}), b"not gzip, not json", {}))
    page = explore(layer="linear", batch=78)
    assert not page.exception
    assert any(text.startswith("The trace of this run cannot be shown") for text in texts(page, "error"))
    assert any("Device and versions" in text for text in texts(page, "markdown"))


def test_a_failed_run_is_shown_with_its_reason(home):
    failed = manifest("failed-1", status="failed", failure=Failure("out_of_memory", "The device ran out of memory."))
    Store(home).add(pack(failed, None, {}))
    page = explore(**{k: "on" if v is True else v for k, v in to_fields(failed.workload).items()}, run="failed-1")
    assert not page.exception
    assert "The device ran out of memory." in texts(page, "error")


def test_an_unexpected_failure_is_an_apology_and_no_traceback(monkeypatch):
    monkeypatch.setattr(Store, "entries", lambda self: 1 / 0)
    page = explore()
    assert not page.exception
    assert any(text.startswith("Sorry, this part of the page failed") for text in texts(page, "error"))
    assert not any("Traceback" in text or "ZeroDivision" in text for text in texts(page))


def test_no_recordings_at_all_is_a_page_that_says_what_to_do(monkeypatch, tmp_path):
    monkeypatch.setattr(session, "store", lambda: Store(tmp_path / "none", tmp_path / "neither"))
    page = explore()
    assert not page.exception
    assert any("There are no runs here yet" in text for text in texts(page, "info"))


def test_the_home_page_says_what_is_here():
    page = AppTest.from_file(str(ROOT / "app.py"), default_timeout=30).run()
    assert not page.exception
    said = " ".join(texts(page))
    assert f"{len(list(RECORDINGS.glob('*.run.zip')))} recordings, made on NVIDIA H200" in said
    assert "small install" in said
