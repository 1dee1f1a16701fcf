"""From a pick to a chart with everything real: page, engine, worker, torch on the CPU, run file, reader, tables."""

import json
import math
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SMALL = {"layer": "geglu_mlp", "batch": 2, "seq": 8, "hidden": 32, "intermediate": 48, "dtype": "fp32", "steps": 4}


def visit(home, **fields):
    """What a visitor with this link sees before and after pressing Run."""
    done = subprocess.run(
        [
            sys.executable,
            str(Path(__file__).with_name("live_visit.py")),
            *(f"{k}={v}" for k, v in (SMALL | fields).items()),
        ],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=os.environ | {"FUSIONSCOPE_HOME": str(home), "OMP_NUM_THREADS": "1"},
        timeout=250,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def said(texts, words):
    return [text for text in texts if words in text]


def test_an_eager_run_on_this_cpu(home):
    seen = visit(home)
    assert seen["exceptions"] == 0
    assert said(seen["first"], "Not run yet")
    assert not said(seen["last"], "Not run yet")
    assert said(seen["last"], "Gated MLP (GEGLU): Eager")
    assert seen["runs"] == [f"{seen['link']['run']}.run.zip"]
    assert seen["metrics"]["Step, unprofiled"].endswith(("µs", "ms"))
    assert "Kernels a step" not in seen["metrics"], "a CPU run speaks no GPU words"
    timeline = seen["charts"][0]
    names = {
        custom[1] for trace in timeline["data"] for custom in trace.get("customdata", []) if trace["type"] == "bar"
    }
    assert {"mlp_fwd", "aten::linear", "aten::mm", "aten::gelu"} <= names
    operators = next(table for table in seen["tables"] if "Calls a step" in table or "launches_per_step" in table)
    assert "aten::mm" in operators["name"]
    assert seen["torch"] == []


@pytest.mark.skipif(not shutil.which("g++"), reason="Inductor needs g++ on the CPU")
def test_a_compiled_run_on_this_cpu(home):
    seen = visit(home, backend="compile")
    assert seen["exceptions"] == 0
    names = {custom[1] for trace in seen["charts"][0]["data"] for custom in trace.get("customdata", [])}
    assert any("cpp_fused" in name for name in names if isinstance(name, str))
    assert said(seen["last"], "`gelu`, ")
    assert seen["torch"] == []


def test_a_run_that_fails_in_the_worker_says_why_and_the_last_chart_stays(home):
    """It fits into all of this machine's memory, and so is offered; not into what is free, and so the worker refuses."""
    lines = [line.split() for line in Path("/proc/meminfo").read_text().splitlines()]
    memory = {words[0].rstrip(":"): int(words[1]) * 1024 for words in lines}
    if memory["MemAvailable"] > 0.96 * memory["MemTotal"]:
        pytest.skip("nearly all of this machine's memory is free: there are no such sizes")
    side = math.isqrt(int(0.985 * memory["MemTotal"] / 8))
    seen = visit(home, layer="linear", batch=1, in_features=side, out_features=side)
    assert seen["exceptions"] == 0
    assert len(seen["runs"]) == 1, "a failed run is kept"
    assert said(seen["last"], "choose smaller sizes")
    assert said(seen["last"], "Not run yet")
    assert seen["charts"]
    assert seen["torch"] == []


def test_sizes_beyond_this_machine_are_never_offered(home):
    seen = visit(
        home, layer="linear", in_features=3, dtype="fp16", backend="eager", batch=16000000, out_features=16000000
    )
    assert seen["exceptions"] == 0
    assert said(seen["last"], "choose smaller sizes")
    assert seen["charts"]
    assert seen["torch"] == []
