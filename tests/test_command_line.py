"""The command line: one schema for runs and traces, and exit code 2 with one sentence for what cannot be read."""

import gzip
import json
import subprocess
import sys
from pathlib import Path

import pytest

from core.__main__ import main
from core.shipped import shipped
from core.store.store import Store
from core.workload import from_preset
from tests.runs import one_kernel_a_step, run_file, trace_bytes

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
