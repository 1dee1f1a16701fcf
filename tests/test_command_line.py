"""The command line: one schema for runs and traces, and exit code 2 with one sentence for what cannot be read."""

import gzip
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from core import sweep_commands
from core.__main__ import main
from core.shipped import shipped
from core.store import runfile
from core.store.manifest import Failure
from core.store.store import Store
from core.store.sweeps import Sweeps
from core.sweep import make_sweep, plan
from core.sweep_order import PointOrder
from core.workload import from_preset
from tests.runs import one_kernel_a_step, run_file, trace_bytes
from tests.sweeps import BATCHES, MAP, TRAFFIC, point_file, write

ROOT = Path(__file__).resolve().parents[1]
FIELDS = {
    "n_events", "n_kernels", "n_memcpy", "n_memset", "kernel_time_us", "gpu_busy_us_by_device", "kernels_linked_to_launch",
    "kernels_linked_to_op", "kernels", "step_us", "compiles", "device", "versions", "notes",
}  # fmt: skip


def printed(capsys, *arguments):
    code = main(arguments)
    return code, json.loads(capsys.readouterr().out)


def test_a_run_and_its_trace_give_the_same_kernels(tmp_path, capsys):
    run, trace = tmp_path / "a.run.zip", tmp_path / "a.json.gz"
    run.write_bytes(run_file())
    trace.write_bytes(trace_bytes(one_kernel_a_step()))
    code, of_run = printed(capsys, "summary", str(run), "--json")
    assert code == 0
    code, of_trace = printed(capsys, "summary", str(trace), "--json")
    assert code == 0
    assert set(of_run) == set(of_trace) >= FIELDS
    assert of_run["kernels"] == of_trace["kernels"]
    assert of_run["kernels"] == [
        {"name": "nvjet_bias_TNT", "family": "gemm", "launches_per_step": 1.0, "n": 2, "median_us": 5.0, "min_us": 5.0,
         "max_us": 5.0, "sum_us": 10.0}
    ]  # fmt: skip
    assert (of_run["n_kernels"], of_run["kernels_linked_to_launch"], of_run["kernels_linked_to_op"]) == (2, 2, 2)
    assert of_run["gpu_busy_us_by_device"] == {"0": 10.0}
    assert of_run["step_us"]["median"] == 11.0
    assert of_trace["step_us"] is None
    assert of_run["device"]["name"] == "NVIDIA H200"


@pytest.mark.parametrize(
    "data",
    [b"", b"{", b"junk", gzip.compress(b"{}"), gzip.compress(b"[]")[:8], b"PK\x05\x06" + b"\0" * 18, b"\x1f\x8b"],
)
def test_what_cannot_be_read_ends_with_code_2_and_a_sentence(tmp_path, capsys, data):
    path = tmp_path / "file"
    path.write_bytes(data)
    code, said = printed(capsys, "summary", str(path), "--json")
    assert code == 2
    assert set(said) == {"error"}
    assert said["error"].strip()
    assert "\n" not in said["error"]


def test_a_missing_file_and_a_folder(tmp_path, capsys):
    for path in (tmp_path / "absent", tmp_path):
        assert printed(capsys, "summary", str(path), "--json")[0] == 2


def test_a_bad_field_is_one_sentence_without_a_traceback():
    done = subprocess.run(
        [sys.executable, "-m", "core", "record", "layer=linear", "batch=nothing"],
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    assert done.returncode == 2
    assert done.stderr.strip() == "Batch must be a whole number from 1 to 16,777,216; 'nothing' is not."


def test_list_tells_what_is_kept(home, capsys):
    Store(home).add(run_file("mine"))
    code, rows = printed(capsys, "list", "--json")
    assert code == 0
    assert "mine" in [row["id"] for row in rows]


def test_summary_needs_neither_streamlit_nor_dask_nor_torch(tmp_path):
    path = tmp_path / "a.run.zip"
    path.write_bytes(run_file())
    script = (
        "import sys; from core.__main__ import main; main(sys.argv[1:]);"
        "bad = {'torch', 'streamlit', 'distributed', 'dask', 'plotly'} & set(sys.modules); sys.exit(str(bad) if bad else 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, "summary", str(path)], capture_output=True, text=True, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr


def test_the_shipped_set_holds_every_layer_on_every_backend_and_the_grids():
    found = shipped()
    workloads = {one.workload for one in found}
    assert len(workloads) == len(found)
    for name in ("geglu_mlp", "swiglu_mlp"):
        for backend in ("eager", "compile", "compile_dynamic", "liger"):
            own = {dict(w.sizes)["intermediate"] for w in workloads if (w.layer, w.backend) == (name, backend)}
            assert {1024, 3072, 4096, 8192, 16384, 11008, 13824, 14336, 18944} <= own
    articles = [one for one in found if one.workload.layer == "geglu_mlp" and not one.protocol.light]
    assert max(one.protocol.fresh_process_compiles for one in articles) == 3
    assert found[0].workload == from_preset("03_simple_mlp")


SMALL_SWEEP = ("layer=linear", "in_features=16", "out_features=32", "dtype=fp32", "steps=2", "backends=eager")


def test_a_sweep_is_recorded_and_resumed_by_the_same_command(tmp_path, capsys):
    out = tmp_path / "sweeps"
    command = ("record", "--sweep", "axis=batch", "values=4,8,16", *SMALL_SWEEP, "--out", str(out))
    assert main(command) == 0
    (folder,) = out.iterdir()
    names = ["0000.run.zip", "0001.run.zip", "0002.run.zip", "sweep.json"]
    assert sorted(path.name for path in folder.iterdir()) == names
    assert "eager, batch 16: nothing to compile" in capsys.readouterr().out
    before = (folder / names[0]).read_bytes()
    (folder / names[1]).unlink()
    assert main(command) == 0
    assert "2 of 3 points there" in capsys.readouterr().out
    assert list(out.iterdir()) == [folder] and sorted(path.name for path in folder.iterdir()) == names
    assert (folder / names[0]).read_bytes() == before
    died = replace(runfile.read_manifest(before), status="failed", failure=Failure("crashed", "It died."))
    (folder / names[0]).write_bytes(runfile.pack(died, None, {}))
    assert main(command) == 0
    assert "2 of 3 points there" in capsys.readouterr().out
    assert runfile.read_manifest(folder / names[0]).failure is None
    assert main(command) == 0
    assert len(list(out.iterdir())) == 2


def test_a_backward_pass_is_no_compile_of_its_own(capsys):
    sweep = make_sweep({**BATCHES, "passes": "fwd_bwd"})
    task = next(task for task in plan(sweep) if task.backend == "compile")
    found = runfile.read_manifest(point_file("own", sweep, task))
    call = found.point.call
    both = replace(call, attempts=(*call.attempts, replace(call.attempts[0], backward=True)))
    data = runfile.pack(replace(found, point=replace(found.point, call=both)), None, {})
    sweep_commands._telling(lambda order, report: data)(PointOrder("own", sweep, task), lambda text, done, total: None)
    assert "compile, batch 4: 1 compile, " in capsys.readouterr().out


def test_traffic_is_recorded_from_a_file(tmp_path, home):
    rows = tmp_path / "traffic.csv"
    rows.write_text("\ufeffbatch,seq,count\n2,3,40\n4,3,2\n")
    assert main(("record", "--traffic", str(rows), *SMALL_SWEEP)) == 0
    (entry,) = [one for one in Store(home).sweeps.entries() if not one.recorded]
    assert (entry.head.sweep.points, entry.head.sweep.counts, entry.complete) == (((6,), (12,)), (40, 2), True)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--sweep", "values=4,x"), "Each batch must be a whole number"),
        (("--sweep", "values=4", "values=8"), "'values' is given twice"),
        (("--sweep", "values=4", "--fresh", "1"), "--fresh is for single runs"),
        (("--shipped-sweeps", "values=4"), "The shipped sweeps are fixed"),
        (("--traffic", "{rows}", "axis=batch"), "Traffic brings its own sizes; leave axis out."),
        (("--traffic", "{rows}"), "Row 1 ('4, 8, 2, 1') is not batch, seq, count"),
        (("--traffic", "{rows}.none"), "cannot be read"),
    ],
)
def test_a_sweep_that_cannot_be_recorded_ends_with_a_sentence(tmp_path, capsys, arguments, sentence):
    rows = tmp_path / "rows.csv"
    rows.write_text("4, 8, 2, 1")
    assert main(("record", *(one.replace("{rows}", str(rows)) for one in arguments))) == 2
    assert sentence in capsys.readouterr().err


@pytest.mark.parametrize("fields", [BATCHES, MAP, TRAFFIC])
def test_the_ledger_of_a_folder_and_of_its_zip_are_alike(tmp_path, capsys, fields):
    sweeps = Sweeps(tmp_path, tmp_path / "none")
    write(tmp_path / "sweeps", "mine", fields)
    path = tmp_path / "mine.zip"
    path.write_bytes(sweeps.export(sweeps.get("mine")))
    code, of_folder = printed(capsys, "summary", str(tmp_path / "sweeps" / "mine"), "--json")
    assert code == 0
    assert printed(capsys, "summary", str(path), "--json") == (0, of_folder)
    assert (of_folder["id"], of_folder["done"], of_folder["total"]) == (
        "mine",
        len(of_folder["calls"]),
        len(of_folder["calls"]),
    )
    assert of_folder["device"]["name"] == "NVIDIA H200"
    assert main(("summary", str(path))) == 0
    assert "n 4" in capsys.readouterr().out


def test_a_row_of_the_ledger_tells_what_a_call_did(tmp_path, capsys):
    write(tmp_path, "mine", BATCHES)
    _, found = printed(capsys, "summary", str(tmp_path / "mine"), "--json")
    static = [row for row in found["calls"] if row["series"] == "compile_static"]
    assert [row["outcome"] for row in static] == ["compiled", "recompiled", "ran eager", "ran eager"]
    second = static[1]
    assert (second["run"], second["call"], second["values"], second["seconds"]) == ("mine-0009", 2, {"batch": 8}, 1.0)
    assert second["misses"][0]["dynamo"] == "tensor 'x' size mismatch at index 0. expected 4, actual 8"
    assert (second["attempts"][0]["entry"], second["step_us"]["n"], second["recompiles_so_far"]) == ("0/1", 4, 1)


def test_the_rounds_of_a_map_are_told_apart_and_backends_called_as_on_the_page(tmp_path, capsys):
    write(tmp_path, "map", MAP)
    write(tmp_path, "batches", BATCHES)
    assert main(("summary", str(tmp_path / "map"))) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].endswith("36 of 36 runs")
    (second,) = [
        line for line in lines if line.startswith("torch.compile") and "batch 8, intermediate 2,048, round 2" in line
    ]
    assert "compiled" in second
    assert main(("summary", str(tmp_path / "batches"))) == 0
    told = capsys.readouterr().out
    assert "compile, dynamic=False" in told and "round" not in told


def test_a_damaged_point_is_noted_and_a_strangers_text_moves_no_cursor(tmp_path, capsys):
    write(tmp_path, "mine", BATCHES, strange="\x1b[2J")
    (tmp_path / "mine" / "0002.run.zip").write_bytes(b"junk")
    _, found = printed(capsys, "summary", str(tmp_path / "mine"), "--json")
    assert len(found["calls"]) == 15 and [note[:13] for note in found["notes"]] == ["0002.run.zip:"]
    assert main(("summary", str(tmp_path / "mine"))) == 0
    assert "\x1b" not in capsys.readouterr().out


def test_list_tells_of_sweeps_too(home, capsys):
    write(home / "sweeps", "mine", BATCHES, leave_out=(3,))
    code, rows = printed(capsys, "list", "--json")
    assert code == 0
    (own,) = [row for row in rows if row["id"] == "mine"]
    assert (own["status"], own["recorded"], own["points"]) == ("unfinished", False, {"done": 15, "total": 16})
    assert main(("list",)) == 0
    assert "15 of 16 points" in capsys.readouterr().out
