"""What only a real browser shows: hover, click, zoom, a worker killed in mid-run, two visitors at once."""

import re
import time
from pathlib import Path

import psutil
import pytest

pytestmark = [pytest.mark.browser, pytest.mark.timeout(240)]

CHART = ".st-key-timeline-holder .js-plotly-plot"
# Long enough to be killed in the middle, small enough for a machine of two cores.
SLOW = "layer=geglu_mlp&batch=8&seq=128&hidden=512&intermediate=2048&dtype=fp32&steps=200"
# While the page draws anew there may be no chart for a moment.
RANGE = f"document.querySelector('{CHART}')?.layout?.xaxis?.range"
BARS = f"""() => {{
  const chart = document.querySelector('{CHART}'), box = chart.getBoundingClientRect();
  const {{xaxis, yaxis}} = chart._fullLayout;
  return chart.calcdata.flatMap((trace, i) => trace.filter(bar => bar.s !== undefined && chart.data[i].type === 'bar')
    .map((bar, j) => ({{custom: chart.data[i].customdata[j], opacity: chart.data[i].marker.opacity,
      x: box.left + xaxis._offset + xaxis.c2p(bar.b + bar.s / 2), y: box.top + yaxis._offset + yaxis.c2p(bar.p)}})))
    .filter(bar => bar.custom?.length > 4);  // a hatched gap is no event
}}"""


def bars(page):
    # Until the worker is there, a line about it stands above the chart, and what is above moves what is below.
    page.get_by_text(re.compile("Run live on")).first.wait_for()
    page.wait_for_selector(f"{CHART} .bars path")
    page.wait_for_timeout(400)
    return page.evaluate(BARS)


def kernel(page, word):
    return next(bar for bar in bars(page) if bar["custom"][4] == "gpu" and word in bar["custom"][1])


def test_from_a_link_to_a_hover_and_a_click_that_lights_the_launch(server, visit):
    page = visit(f"{server.url}/Explore?layer=geglu_mlp&backend=compile&step=2")
    fused = kernel(page, "triton_poi_fused")
    page.mouse.move(fused["x"], fused["y"])
    hover = page.locator(f"{CHART} .hoverlayer")
    page.wait_for_timeout(500)
    told = hover.text_content()
    assert "triton_poi_fused__unsafe_view_gelu_mul_0" in told
    assert "start" in told and "duration" in told and "µs" in told
    page.mouse.click(fused["x"], fused["y"])
    page.get_by_text("launched by").first.wait_for()
    lit = [bar["custom"][1] for bar in bars(page) if bar["opacity"] == 1]
    fused_name = "triton_poi_fused__unsafe_view_gelu_mul_0"  # the operator and its kernel are of one name
    assert sorted(lit) == ["cuLaunchKernel", fused_name, fused_name], "and nothing else"
    page.get_by_text("All the profiler noted about this event").click()
    page.get_by_text("registers per thread").first.wait_for()


def test_dragging_zooms_and_the_button_shows_all_again(server, visit):
    page = visit(f"{server.url}/Explore?layer=geglu_mlp&backend=compile&step=2")
    fused = kernel(page, "triton_poi_fused")
    whole = page.evaluate(RANGE)
    page.mouse.move(fused["x"] - 60, fused["y"] - 60)
    page.mouse.down()
    page.mouse.move(fused["x"] + 60, fused["y"] - 60, steps=5)
    page.mouse.up()
    page.wait_for_timeout(2500)
    page.wait_for_function(RANGE)
    zoomed = page.evaluate(RANGE)
    assert zoomed[0] > whole[0] and zoomed[1] - zoomed[0] < (whole[1] - whole[0]) / 2
    assert any("triton" in bar["custom"][1] for bar in bars(page))
    page.get_by_role("button", name="Whole step").click()
    page.wait_for_function(f"({RANGE} ?? [{zoomed[0]}])[0] < {zoomed[0]}")


def test_all_steps_fit_and_nothing_is_cut_off(server, visit):
    page = visit(f"{server.url}/Explore?layer=geglu_mlp&step=all")
    shown = bars(page)
    assert len([bar for bar in shown if bar["custom"][4] == "gpu"]) >= 100, "five kernels in each of twenty steps"
    for theme_width in (1280, 1920):
        page.set_viewport_size({"width": theme_width, "height": 1000})
        page.wait_for_timeout(800)
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


def test_back_and_forward_bring_the_page_back(server, visit):
    page = visit(f"{server.url}/Explore?layer=linear&batch=1024")
    bars(page)
    page.get_by_role("link", name="Home").click()
    page.get_by_text("Start here").wait_for()
    page.go_back()
    page.locator("h2", has_text="nn.Linear: Eager").wait_for()
    bars(page)
    assert not page.get_by_text("Sorry").count()


def test_two_visitors_press_run_at_once(server, visit):
    pages = [visit(f"{server.url}/Explore?layer=linear&dtype=fp32&batch={batch}") for batch in (300, 301)]
    buttons = [page.get_by_role("button", name="Run live on this CPU") for page in pages]
    for button in buttons:
        button.wait_for()
    for button in buttons:
        button.click()
    for page, batch in zip(pages, (300, 301), strict=True):
        page.get_by_text("Live on CPU").first.wait_for()
        page.wait_for_url(re.compile(f"batch={batch}.*run=linear-eager"))
        assert page.locator("h2", has_text="nn.Linear: Eager").count() == 1
        assert page.get_by_text(str(batch)).first.is_visible()


def workers_with_torch(server):
    """Worker processes below the server that have torch loaded."""
    found = []
    for child in psutil.Process(server.process.pid).children(recursive=True):
        try:
            if any("libtorch_cpu" in mapped.path for mapped in child.memory_maps()):
                found.append(child)
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
    return found


def test_a_worker_killed_in_mid_run_is_told_and_the_next_run_works(server, visit):
    page = visit(f"{server.url}/Explore?{SLOW}")
    page.get_by_role("button", name="Run live on this CPU").click()
    page.get_by_text("profiling 200 steps").first.wait_for()
    (worker,) = workers_with_torch(server)
    worker.kill()
    killed = time.monotonic()
    page.get_by_text("died while it ran").first.wait_for(timeout=10_000)
    page.get_by_role("button", name="Run live on this CPU").wait_for(timeout=10_000)
    assert time.monotonic() - killed < 10
    assert page.locator(CHART).count() == 1, "the last chart stays"
    assert not page.locator('[data-testid="stException"]').count()
    page.get_by_role("textbox", name="Batch").fill("1")
    page.get_by_role("textbox", name="Batch").press("Enter")
    page.get_by_text("Not run yet").first.wait_for()
    page.get_by_role("button", name="Run live on this CPU").click()
    page.get_by_text("Live on CPU").first.wait_for()


def test_a_run_outlives_a_reload_and_can_be_cancelled(server, visit):
    page = visit(f"{server.url}/Explore?{SLOW}&seed=1")
    page.get_by_role("button", name="Run live on this CPU").click()
    page.get_by_text("profiling 200 steps").first.wait_for()
    page.reload()
    page.get_by_text("profiling 200 steps").first.wait_for()
    kept = len(list((Path(server.log).parent / "home" / "runs").glob("*.run.zip")))
    page.get_by_role("button", name="Cancel").click()
    page.get_by_text("cancelled, here or by another visitor").first.wait_for(timeout=10_000)
    assert len(list((Path(server.log).parent / "home" / "runs").glob("*.run.zip"))) == kept
    page.get_by_role("button", name="Run live on this CPU").wait_for()


def test_the_web_process_never_loads_torch(server):
    maps = Path(f"/proc/{server.process.pid}/maps").read_text()
    assert "libtorch" not in maps and "libtriton" not in maps
