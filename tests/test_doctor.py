"""The doctor's checks that need no torch, really tried here, its guard, its order, and its command."""

import json
import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from packaging.requirements import Requirement

from core import health, health_checks
from core.health import Check, Examination, Finding, Probe
from core.store.store import Store
from tests.runs import run_file

ROOT = Path(__file__).resolve().parents[1]


def check(name="one", state="ok", **fields):
    return Check(**({"name": name, "state": state, "found": "seen", "matters": "It matters."} | fields))


def doctor(*arguments, code="from core.__main__ import main; sys.exit(main(sys.argv[1:]))", **environment):
    """The command in a process of its own; `code` may set the stage for it."""
    return subprocess.run(
        [sys.executable, "-c", f"import sys; {code}", "doctor", *arguments],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=os.environ | environment,
        timeout=200,
    )


WITHOUT_TORCH = (
    "import core.health_checks as h; from core.__main__ import main; h.has_torch = lambda: False;"
    "code = main(sys.argv[1:]); bad = {'torch', 'streamlit', 'distributed'} & set(sys.modules);"
    "sys.exit(f'imported {bad}' if bad else code)"
)


def test_on_this_machine_all_that_needs_no_torch_is_in_order(home):
    found = {one.name: one for one in health_checks.examine(Store(home), "a test").checks}
    assert {
        "Python",
        "Package torch",
        "Package streamlit",
        "Package nvidia-ml-py",
        "Python headers",
        "Store of runs",
    } <= set(found)
    for one in found.values():
        assert one.matters.endswith(".")
        assert one.seconds is not None
        assert one.state != "problem" or one.remedy, one
    assert found["Disk for runs"].state == "ok"
    assert "GB free" in found["Disk for runs"].found
    assert "0 runs of your own" in found["Store of runs"].found


def test_compilers_compile_and_run_a_program():
    for named, language in (("g++", "c++"), ("gcc", "c")):
        finding = health_checks.compiler(named, language, named, needed=True, live=True)
        assert finding.state == "ok", finding
        assert "compiled and works" in finding.found


@pytest.mark.parametrize(
    ("needed", "live", "state"), [(True, True, "problem"), (False, True, "warning"), (False, False, "not needed")]
)
def test_a_path_without_compilers(monkeypatch, tmp_path, needed, live, state):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.delenv("CC", raising=False)
    finding = health_checks.compiler(None, "c++", "g++", needed=needed, live=live)
    assert (finding.state, finding.found) == (state, "No g++ on PATH.")
    assert finding.command == ("apt-get install g++" if live else None)
    states = {one.name: one.look().state for one in health_checks.compilers(live=True)}
    assert set(states.values()) <= {"problem", "warning"}
    assert health_checks.headers(live=True).state == "unknown"


def test_a_compiler_that_is_found_and_does_not_work(tmp_path, monkeypatch):
    broken = tmp_path / "g++"
    broken.write_text("#!/bin/sh\necho 'fatal error: cc1plus is gone' >&2\nexit 1\n")
    broken.chmod(0o755)
    finding = health_checks.compiler(str(broken), "c++", "g++", needed=True, live=True)
    assert finding.state == "problem"
    assert "cc1plus is gone" in finding.found
    monkeypatch.setenv("CXX", "no-such-compiler -O2")
    cpp, _ = health_checks.compilers(live=True)
    assert cpp.look().found == "no-such-compiler -O2 is not found."


def test_headers_that_are_not_there(monkeypatch, tmp_path):
    monkeypatch.setattr(health_checks.sysconfig, "get_path", lambda name: str(tmp_path))
    assert health_checks.headers(live=True).state == "problem"
    assert "-dev" in health_checks.headers(live=True).command
    (tmp_path / "Python.h").write_text("#error not the real one\n")
    assert "cannot include it" in health_checks.headers(live=True).found


def test_versions_against_pins(tmp_path):
    (tmp_path / "base.txt").write_text("msgspec==0.0.1  # old\n")
    (tmp_path / "all.txt").write_text(
        '# a comment\n-r base.txt\nnumpy>=1\nno-such-package-here==2\nisal==9 ; sys_platform == "x"\n'
    )
    found = {probe.name: health.tried(probe) for probe in health_checks.packages(tmp_path / "all.txt", live=True)}
    assert {name: one.state for name, one in found.items()} == {
        "Package msgspec": "warning", "Package numpy": "ok", "Package no-such-package-here": "problem",
        "Package isal": "not needed",
    }  # fmt: skip
    assert found["Package msgspec"].command.endswith("-m pip install 'msgspec==0.0.1'")
    assert "==0.0.1 is wanted" in found["Package msgspec"].found


def test_a_build_of_a_pinned_version_is_that_version():
    assert Requirement("torch==2.13.0").specifier.contains("2.13.0+cpu", prereleases=True)


@pytest.mark.parametrize(
    ("name", "live", "state"),
    [("torch", False, "warning"), ("liger-kernel", False, "not needed"), ("liger-kernel", True, "warning"),
     ("distributed", True, "problem"), ("distributed", False, "not needed"), ("streamlit", False, "problem")],
)  # fmt: skip
def test_a_missing_package_matters_as_much_as_what_stands_on_it(monkeypatch, name, live, state):
    def gone(_):
        raise health_checks.importlib.metadata.PackageNotFoundError

    monkeypatch.setattr(health_checks.importlib.metadata, "version", gone)
    monkeypatch.delenv("FUSIONSCOPE_SCHEDULER", raising=False)
    assert health_checks.package(Requirement(f"{name}==1"), live=live).state == state


def test_an_old_python():
    assert health_checks.python_version().state == "ok"
    finding = health_checks.python_version(">=4")
    assert finding.state == "problem"
    assert ">=4 is needed" in finding.found


def test_a_home_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    finding = health_checks.disk(Store(tmp_path / "file"))
    assert finding.state == "problem"
    assert "FUSIONSCOPE_HOME" in finding.remedy


def test_a_store_with_a_damaged_file(home):
    store = Store(home)
    store.add(run_file("mine"))
    (home / "runs" / "hurt.run.zip").write_bytes(b"no zip")
    finding = health_checks.kept(store)
    assert finding.state == "warning"
    assert finding.found.startswith("1 runs of your own")
    assert "1 files that cannot be read (hurt.run.zip)" in finding.found
    assert health_checks.kept(Store(home, recordings=home / "none")).state == "warning"


def test_a_busy_machine(monkeypatch):
    monkeypatch.setattr(os, "getloadavg", lambda: (1000.0, 0.0, 0.0))
    assert health_checks.load().state == "warning"


def test_a_check_that_raises_is_a_problem_with_a_sentence_and_a_log():
    def look():
        raise ValueError(f"nothing in {Path.home()}/secret\nsecond line")

    found = health.tried(Probe("Broken", "It matters.", look, "Do this.", "make it"))
    assert (found.state, found.remedy, found.command) == ("problem", "Do this.", "make it")
    assert found.found == "It stopped with ValueError: nothing in ~/secret"
    assert found.failure == "unexpected"
    assert "Traceback" in found.log
    assert str(Path.home()) not in found.log


def test_a_check_that_fails_in_a_known_way_says_what_to_do():
    def look():
        raise RuntimeError("InvalidCxxCompiler: no")

    assert health.tried(Probe("a", "b", look, "c")).found.startswith("torch.compile found no working C++ compiler")


def test_the_worst_comes_first_and_the_rest_stays_as_it_was():
    states = ["ok", "not needed", "unknown", "problem", "ok", "warning", "problem"]
    found = health.in_order([check(str(index), state) for index, state in enumerate(states)])
    assert [(one.name, one.state) for one in found] == [
        ("3", "problem"), ("6", "problem"), ("5", "warning"), ("2", "unknown"), ("0", "ok"), ("4", "ok"), ("1", "not needed")
    ]  # fmt: skip
    assert health.counted(found) == "2 problems, 1 warning, 1 unknown, 2 ok, 1 not needed"


def test_names_of_host_and_user_stay_here(monkeypatch):
    monkeypatch.setattr(health.socket, "gethostname", lambda: "my-host")
    monkeypatch.setattr(health.getpass, "getuser", lambda: "jane")
    text = f"my-host: jane in /home/jane/x, /Users/joe/y, {ROOT}/core/a.py, {sys.prefix}/lib; python3.11-dev"
    said = health.private(text)
    assert (
        said
        == "<name>: <name> in /home/<user>/x, /Users/<user>/y, <fusionscope>/core/a.py, <python>/lib; python3.11-dev"
    )


def test_a_bug_report_holds_times_results_and_the_end_of_logs():
    found = Examination("a test", "2026-01-02T03:04:05+00:00", (
        check("fine"), check("bad", "problem", remedy="Do this.", command="make it", log="first\n" * 50 + "last"),
    ))  # fmt: skip
    lines = health.report([found]).splitlines()
    assert lines[0].startswith("FusionScope ")
    assert lines[1] == "taken 2026-01-02T03:04:05+00:00 in a test, 2 checks"
    assert lines[3:6] == [" x  bad: seen", "      Do this.", "      $ make it"]
    assert lines[-2:] == ["      | last", "ok  fine: seen"]
    assert lines.count("      | first") == 11


def test_an_examination_crosses_to_the_web_process_as_json():
    found = Examination("a test", "now", (check(failure="cuda_error", log="x", seconds=0.5), check(state="not needed")))
    assert msgspec.json.decode(msgspec.json.encode(found), type=Examination) == found


def test_the_command_without_torch_says_so_and_imports_nothing_heavy():
    done = doctor(code=WITHOUT_TORCH)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "torch is not installed, so nothing was profiled or compiled" in done.stdout
    assert "ok  Python: Python 3." in done.stdout
    assert done.stdout.splitlines()[-1].startswith("0 problems, ")


def test_the_command_ends_with_code_1_where_something_is_a_problem(tmp_path):
    (tmp_path / "file").write_text("")
    done = doctor("--json", code=WITHOUT_TORCH, FUSIONSCOPE_HOME=str(tmp_path / "file"))
    assert done.returncode == 1, done.stderr
    (found,) = json.loads(done.stdout)
    assert [one["name"] for one in found["checks"] if one["state"] == "problem"] == ["Disk for runs", "Store of runs"][
        :1
    ]


def test_torch_that_cannot_be_imported_is_a_problem_and_no_traceback():
    pytest.importorskip("distributed")  # the whole install
    code = "from core.__main__ import main; sys.modules['torch'] = None;"
    code += "import core.health_checks as h; h.has_torch = lambda: True; sys.exit(main(sys.argv[1:]))"
    done = doctor(code=code)
    assert done.returncode == 1
    assert "\n x  Import of torch: " in f"\n{done.stdout}"
    assert "Traceback" not in done.stdout + done.stderr


def test_a_finding_may_have_no_remedy():
    assert health.tried(Probe("a", "b", lambda: Finding("ok", "fine"), "never said")).remedy is None
