"""Real runs on the CPU: what is measured is there, what cannot be known says so, and failures are results."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from core.analysis.operators import operator_table
from core.analysis.steps import settled
from core.bench import build as build_module
from core.bench import compiling, failures, machine, torch_internals
from core.bench.run import run
from core.store.manifest import protocol_for
from core.store.runfile import read_code, read_manifest, read_trace_bytes
from core.store.store import Store
from core.trace import read_trace
from core.workload import make

pytestmark = pytest.mark.skipif(torch.cuda.is_available(), reason="these tests say what a CPU run holds")

ROOT = Path(__file__).resolve().parents[2]
MLP = {"layer": "geglu_mlp", "batch": 2, "seq": 8, "hidden": 32, "intermediate": 48, "dtype": "fp32", "steps": 4}


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def carried_out(fields, said=None):
    workload = make(fields)
    data = run(
        workload, protocol_for(workload), lambda text, done, total: said.append(text) if said is not None else None
    )
    return read_manifest(data), data


@pytest.mark.parametrize("passes", ["fwd", "fwd_bwd"])
def test_an_eager_run(passes):
    said = []
    manifest, data = carried_out(MLP | {"passes": passes}, said)
    assert manifest.status == "ok"
    assert manifest.device.kind == "cpu"
    assert len(manifest.step_us.values) >= 5
    assert all(value > 0 for value in manifest.step_us.values)
    assert said[0] == "Building the layer on the device"
    assert set(manifest.stages_s) >= set(said[:-1])
    # a CPU has none of these, and unknown is not 0
    assert manifest.load is manifest.graph_replay_us is manifest.peak_memory_bytes is manifest.other_processes is None
    assert manifest.graph_replay_why == "CUDA graphs need a GPU."
    assert manifest.compiles == ()
    tables = read_trace(read_trace_bytes(data))
    assert settled(tables, 4)[0]
    operators = operator_table(tables).set_index("name")
    assert operators.loc["aten::mm", "calls_per_step"] == (3 if passes == "fwd" else 9)
    assert "aten::gelu" in operators.index
    assert ("aten::gelu_backward" in operators.index) == (passes == "fwd_bwd")


@pytest.mark.parametrize("passes", ["fwd", "fwd_bwd"])
def test_eager_fp32_is_its_own_reference(passes):
    manifest, _ = carried_out(MLP | {"passes": passes})
    assert {error.of for error in manifest.errors} == (
        {"output"}
        if passes == "fwd"
        else {"output", "gradient of input 0", *(f"gradient of {name}.weight" for name in ("gate", "up", "down"))}
    )
    assert all(error.relative == 0.0 and error.finite for error in manifest.errors)


def test_half_precision_is_further_from_fp32_but_near():
    manifest, _ = carried_out(MLP | {"dtype": "bf16"})
    assert 1e-4 < manifest.errors[0].relative < 3e-2


@pytest.mark.skipif(not shutil.which("g++"), reason="Inductor needs g++ on the CPU")
def test_a_compiled_run_holds_cold_compiles_code_and_what_was_fused():
    manifest, data = carried_out(MLP | {"backend": "compile"})
    assert manifest.status == "ok", manifest.failure
    assert [one.process for one in manifest.compiles if one.process == "warm"] == ["warm"] * 3
    assert [one.shown for one in manifest.compiles] == [False] * (len(manifest.compiles) - 1) + [True]
    assert all(one.cold and one.first_call_s > 0.05 for one in manifest.compiles)
    assert all(one.stages_s["inductor"] > 0 and one.graph_breaks == 0 for one in manifest.compiles)
    fused = next(source for source in manifest.sources if source.language == "cpp")
    assert {"gelu", "mul"} <= set(fused.source_nodes)
    assert "aten.tanh.default" in fused.aten_ops
    assert fused.kernel in read_code(data)["inductor_0.py"]
    names = operator_table(read_trace(read_trace_bytes(data)))["name"].tolist()
    assert any(fused.kernel in name for name in names)
    assert "aten::gelu" not in names
    assert manifest.errors[0].relative < 1e-6


@pytest.mark.skipif(not shutil.which("g++"), reason="Inductor needs g++ on the CPU")
def test_what_a_backward_kernel_computes_is_unknown_on_a_cpu_and_said_so():
    manifest, _ = carried_out(MLP | {"backend": "compile", "passes": "fwd_bwd"})
    assert manifest.status == "ok", manifest.failure
    generated = [source for source in manifest.sources if source.language == "cpp"]
    assert {"gelu", "mul"} <= set(generated[0].source_nodes)
    assert [(source.aten_ops, source.source_nodes) for source in generated[1:]] == [((), ())] * (len(generated) - 1)
    assert any("backward" in source.kernel for source in generated[1:])


def test_liger_without_a_gpu_is_a_result_that_says_why():
    manifest, data = carried_out(MLP | {"backend": "liger"})
    assert manifest.status == "failed"
    assert manifest.failure.kind == "no_gpu"
    assert manifest.failure.sentence.startswith("Liger's Triton kernels need a GPU")
    assert "Traceback" in manifest.failure.log
    assert read_trace_bytes(data) is None


def test_sizes_beyond_memory_are_refused_before_anything_is_built(monkeypatch):
    monkeypatch.setattr(build_module, "torch", None)
    manifest, _ = carried_out(MLP | {"batch": 10_000_000, "hidden": 100_000})
    assert manifest.failure.kind == "does_not_fit"
    assert "choose smaller sizes" in manifest.failure.sentence


def test_running_out_of_memory_is_a_result_and_the_next_run_works(monkeypatch):
    monkeypatch.setattr(machine, "free_memory_bytes", lambda device: None)
    manifest, _ = carried_out(MLP | {"batch": 4096, "seq": 4096, "hidden": 1 << 20, "intermediate": 16})
    assert manifest.failure.kind == "out_of_memory"
    assert carried_out(MLP)[0].status == "ok"


def test_no_compiler_is_a_result_that_says_what_to_install(home):
    fields = [f"{name}={value}" for name, value in (MLP | {"backend": "compile"}).items()]
    nothing = {"PATH": "/nowhere", "FUSIONSCOPE_HOME": str(home), "TORCHINDUCTOR_VEC_ISA_OK": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "core", "record", *fields], env=nothing, cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 1, done.stderr
    (entry,) = [entry for entry in Store(home).entries() if not entry.recorded]
    assert entry.manifest.failure.kind == "no_compiler", entry.manifest.failure
    assert "install g++" in entry.manifest.failure.sentence


def test_a_nan_is_loud():
    workload = make(MLP)
    built = build_module.build(workload, "cpu")
    built.module.gate.weight.data.fill_(float("nan"))
    (error,) = build_module.numeric_errors(workload, built, build_module.step_of(built, built.module), "cpu")
    assert (error.finite, error.relative) == (False, None)


def test_a_twin_holds_the_same_numbers():
    from core.layers.geglu_mlp import build, build_liger

    sizes = {"batch": 1, "seq": 2, "hidden": 8, "intermediate": 16}
    torch.manual_seed(1)
    own, inputs = build(sizes, {}, torch.float32, "cpu")
    torch.manual_seed(1)
    twin, twin_inputs = build_liger(sizes, {}, torch.float32, "cpu")
    assert own.state_dict().keys() == twin.state_dict().keys()
    assert all(torch.equal(own.state_dict()[name], twin.state_dict()[name]) for name in own.state_dict())
    assert torch.equal(inputs[0], twin_inputs[0])


def test_seeds_make_runs_repeatable():
    one, two, other = (build_module.build(make(MLP | {"seed": seed}), "cpu") for seed in (3, 3, 4))
    assert torch.equal(one.inputs[0], two.inputs[0])
    assert not torch.equal(one.inputs[0], other.inputs[0])


@pytest.mark.skipif(not shutil.which("g++"), reason="Inductor needs g++ on the CPU")
def test_a_compile_in_a_fresh_process():
    workload = make(MLP | {"backend": "compile"})
    rows, notes = compiling.in_fresh_processes(workload, protocol_for(workload, 1), lambda index: None)
    assert notes == ()
    assert [row.process for row in rows] == ["fresh"]


def test_a_fresh_process_that_fails_is_noted():
    workload = make(MLP | {"backend": "liger"})
    protocol = protocol_for(make(MLP | {"backend": "compile"}), 1)
    rows, notes = compiling.in_fresh_processes(workload, protocol, lambda index: None)
    assert rows == ()
    assert notes[0].startswith("A compile in a fresh process failed")


def test_the_observer_leaves_pytorch_as_it_found_it():
    from torch._inductor import config
    from torch._inductor.runtime.triton_heuristics import CachingAutotuner

    before = (config.trace.provenance_tracking_level, CachingAutotuner.benchmark_all_configs)
    with pytest.raises(ZeroDivisionError), torch_internals.observe():
        _ = 1 / 0
    assert (config.trace.provenance_tracking_level, CachingAutotuner.benchmark_all_configs) == before


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 1 TiB"), "out_of_memory"),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes"), "out_of_memory"),
        (RuntimeError("0 active drivers ([]). There should only be one."), "no_gpu"),
        (RuntimeError("\"addmm_impl_cpu_\" not implemented for 'Half'"), "unsupported_dtype"),
        (RuntimeError("CUDA error: an illegal memory access was encountered"), "cuda_error"),
        (KeyError("x"), "unexpected"),
    ],
)
def test_failures_are_named(error, kind):
    found = failures.describe(error)
    assert found.kind == kind
    assert "\n" not in found.sentence
    assert type(error).__name__ in found.log


def test_what_this_machine_is():
    found = machine.look_over()
    assert found.device.kind == "cpu"
    assert found.versions["torch"] == str(torch.__version__)
    assert set(found.rates.flops_per_s) == {"bf16", "fp16", "fp32"}
    assert min(found.rates.flops_per_s.values()) > 1e6
    assert "a GPU is needed" in found.gaps["liger"]
    assert set(found.gaps) == {"liger", "compile_liger"} or not shutil.which("g++")
