"""The doctor's checks that need torch, really carried out on this CPU: by the function, the task and the command."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
import torch

from core.bench import doctor, tasks
from core.health import Examination, Finding, Probe

pytestmark = pytest.mark.skipif(torch.cuda.is_available(), reason="these tests say what is found on a CPU")

ROOT = Path(__file__).resolve().parents[2]
FOR_A_GPU = ["Driver and CUDA", "GPU memory", "GPU clocks", "Triton", "Liger", "CUDA graphs"]


def by_name(found):
    return {check.name: check for check in found.checks}


@pytest.mark.skipif(not shutil.which("g++"), reason="Inductor needs g++ on the CPU")
def test_the_task_on_a_cpu():
    said = []
    data = tasks.examine(b"", lambda text, done, total: said.append((text, done, total)))
    assert type(data) is bytes
    found = msgspec.json.decode(data, type=Examination)
    checks = by_name(found)
    assert found.where == "the worker"
    assert [name for name, one in checks.items() if one.state == "not needed"] == FOR_A_GPU
    assert checks["Device"].state == "warning"
    assert "No GPU that torch can use" in checks["Device"].found
    assert checks["Profiler"].found == "all 3 profiled matrix products came back as operators"
    assert checks["torch.compile"].state == "ok", checks["torch.compile"]
    assert "compiled cold in" in checks["torch.compile"].found
    assert said[0] == ("trying Device", 0, 9)
    assert ("trying torch.compile", 7, 9) in said


def test_compiling_without_a_compiler_is_a_problem_with_a_sentence(tmp_path):
    """In a process of its own: Inductor remembers the compiler it has found."""
    done = subprocess.run(
        [sys.executable, "-m", "core", "doctor", "--json"],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={k: v for k, v in os.environ.items() if k not in ("CXX", "CC")} | {"PATH": str(tmp_path)},
        timeout=200,
    )
    assert done.returncode == 1, done.stderr
    checks = {one["name"]: one for part in json.loads(done.stdout) for one in part["checks"]}
    assert checks["torch.compile"]["state"] == "problem"
    assert checks["torch.compile"]["found"].startswith("torch.compile found no working C++ compiler")
    assert "Traceback" in checks["torch.compile"]["log"]
    assert str(ROOT) not in done.stdout
    assert checks["Profiler"]["state"] == "ok"
    assert checks["C++ compiler (g++)"]["state"] == "problem"


def test_a_function_that_is_not_compiled_is_not_called_compiled(monkeypatch):
    monkeypatch.setattr(torch, "compile", lambda function, **options: function)
    finding = doctor.compiled()
    assert finding.state == "problem"
    assert "compiled nothing" in finding.found


def test_code_that_computes_something_else_is_a_problem(monkeypatch):
    monkeypatch.setattr(torch, "compile", lambda function, **options: lambda x: function(x) + 0.5)
    probe = next(probe for probe in doctor.probes() if probe.name == "torch.compile")
    assert "differs from eager by 5.0e-01" in doctor.tried(probe).found


def examined(monkeypatch, *looks):
    """An examination with probes of our own, by what each does."""
    made = tuple(Probe(str(index), "It matters.", look, "Do this.") for index, look in enumerate(looks))
    monkeypatch.setattr(doctor, "probes", lambda: made)
    return doctor.examine(lambda *said: None, "a test").checks


def fine():
    return Finding("ok", "fine")


def test_a_check_that_raises_leaves_the_others(monkeypatch):
    checks = examined(monkeypatch, fine, lambda: 1 / 0, fine)
    assert [check.state for check in checks] == ["ok", "problem", "ok"]
    assert checks[1].found == "It stopped with ZeroDivisionError: division by zero"


def test_nothing_is_tried_in_a_lost_context_and_the_worker_is_replaced(monkeypatch):
    pytest.importorskip("distributed")
    from core.engine.task import LastResult

    def lost():
        raise RuntimeError("CUDA error: an illegal memory access was encountered")

    checks = examined(monkeypatch, fine, lost, lambda: pytest.fail("tried in a lost context"))
    assert [check.state for check in checks] == ["ok", "problem", "unknown"]
    assert checks[2].found == doctor.NO_CONTEXT
    assert isinstance(tasks.examine(b"", lambda *said: None), LastResult)


def test_a_device_that_does_not_answer_is_the_only_thing_tried(monkeypatch):
    checks = examined(monkeypatch, lambda: 1 / 0, lambda: pytest.fail("tried on a device that does not answer"))
    assert [check.state for check in checks] == ["problem", "unknown"]


def test_what_the_driver_says_of_profiling(monkeypatch, tmp_path):
    params = tmp_path / "params"
    monkeypatch.setattr(doctor, "_DRIVER_PARAMS", params)
    assert doctor._profiling_is_restricted() is None
    params.write_text("ResmanDebugLevel: 4294967295\nRmProfilingAdminOnly: 1\n")
    assert doctor._profiling_is_restricted() is True
    params.write_text("RmProfilingAdminOnly: 0\n")
    assert doctor._profiling_is_restricted() is False
