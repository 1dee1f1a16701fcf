"""Sweeps as the web process starts, joins, cancels and resumes them, with a real engine; it never imports torch."""

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
WEB_PROCESS = """
import json, sys, time
from core.sweep import make_sweep
from core.ui import session

fields = {"layer": "linear", "in_features": "16", "out_features": "32", "dtype": "fp32", "steps": "2", "axis": "batch"}
sweep = make_sweep({**fields, "values": "4,8,16", "backends": "compile"})

def until(condition):
    end = time.monotonic() + 90
    while not condition():
        assert time.monotonic() < end, session.sweep_progress(own)
        time.sleep(0.02)

own = session.start_sweep(sweep)
joined = session.start_sweep(sweep)
other = session.start_sweep(make_sweep({**fields, "values": "4,8", "backends": "eager"}))

def live(*ids):
    return [one for one in ids if session.sweep_progress(one).state in ("running", "waiting")]

running = live(own, other)
until(lambda: session.sweep_progress(own).done == 1)
session.cancel_sweep(own)
until(lambda: session.sweep_progress(own).state == "cancelled")
resumed = session.resume_sweep(own)
until(lambda: not live(own, other))
points = [one.point for one in session.sweeps().manifests(session.sweeps().get(own))]
endless = session.start_sweep(make_sweep({**fields, "values": "4,8,16,32,64", "backends": "compile_static"}))
until(lambda: session.sweep_progress(endless).done == 1)
stopped = session.stop_sweep(endless), session.sweep_progress(endless).state
session.sweeps().delete(endless)
print(json.dumps({
    "stopped": [*stopped, session.stop_sweep(endless), session.stop_sweep("nobody")],
    "deleted": session.sweeps().get(endless) is None,
    "joined": joined == own and resumed == own,
    "running": running == [own, other],
    "states": [session.sweep_progress(one).state for one in (own, other)],
    "complete": [session.sweeps().get(one).complete for one in (own, other)],
    "compiles": [len(point.call.compiles) for point in points],
    "nobody": session.sweep_progress("nobody"),
    "gone": session.resume_sweep("nobody"),
    "torch": "torch" in sys.modules,
}))
"""


def test_a_sweep_is_joined_cancelled_and_resumed(home):
    done = subprocess.run(
        [sys.executable, "-c", WEB_PROCESS],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=os.environ | {"FUSIONSCOPE_HOME": str(home), "OMP_NUM_THREADS": "1"},
        timeout=200,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert json.loads(done.stdout.splitlines()[-1]) == {
        "stopped": [True, "cancelled", False, False],
        "deleted": True,
        "joined": True,
        "running": True,
        "states": ["done", "done"],
        "complete": [True, True],
        "compiles": [1, 1, 0],
        "nobody": None,
        "gone": "nobody",
        "torch": False,
    }
