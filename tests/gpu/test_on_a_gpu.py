"""What the article says, measured by this code on a real GPU; the figures hold on an NVIDIA H200."""

import json
import statistics
from pathlib import Path

import pytest

from core.analysis.headline import headline
from core.analysis.kernels import kernel_table
from core.store.manifest import protocol_for
from core.store.runfile import read_manifest, read_trace_bytes
from core.trace import read_trace
from core.workload import from_preset, with_changes

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(600)]
RUNS = {}


def carried_out(preset, **changes):
    """(manifest, tables) of a run; each workload is run once for all tests."""
    from core.bench.run import run

    workload = from_preset(preset, **changes)
    if workload not in RUNS:
        data = run(workload, protocol_for(workload), lambda text, done, total: None)
        trace = read_trace_bytes(data)
        RUNS[workload] = (read_manifest(data), read_trace(trace) if trace else None)
    return RUNS[workload]


def kernels(preset, **changes):
    """Kernels of a step by name: (launches a step, median µs)."""
    manifest, tables = carried_out(preset, **changes)
    assert manifest.status == "ok", manifest.failure or manifest.settled_why
    table = kernel_table(tables, by=("name",))
    table = table[table["kind"] == "kernel"]
    return dict(zip(table["name"], zip(table["launches_per_step"], table["median_us"], strict=True), strict=True))


def gemms(found):
    return {name: count for name, (count, _) in found.items() if "nvjet" in name or "gemm" in name}


@pytest.mark.parametrize(
    ("backend", "count"), [("eager", 5), ("compile", 4), ("liger", 4)], ids=["eager", "compile", "liger"]
)
def test_kernels_of_the_articles_mlp(backend, count):
    manifest, tables = carried_out("03_simple_mlp", backend=backend)
    assert headline(tables, None).kernels_per_step == count
    assert gemms(kernels("03_simple_mlp", backend=backend)) == gemms(kernels("03_simple_mlp"))
    assert sum(gemms(kernels("03_simple_mlp")).values()) == 3
    assert manifest.errors[0].relative < 1e-2


@pytest.mark.parametrize("backend", ["eager", "compile"])
def test_linear_is_one_kernel_with_the_bias_in_its_epilogue(backend):
    found = kernels("02_linear", backend=backend)
    assert list(found) == list(kernels("02_linear"))
    ((name, (count, _)),) = found.items()
    assert count == 1
    if "nvjet" in name:
        assert "bias" in name


def test_the_figures_of_an_h200():
    """Medians over three runs: a single one is now and then 6% off, at the same clocks."""
    manifest, _ = carried_out("03_simple_mlp")
    if manifest.device.name != "NVIDIA H200":
        pytest.skip(f"the figures are an H200's, this is an {manifest.device.name}")
    runs = [(preset, seed) for preset in ("03_simple_mlp", "03_kernels_mlp", "02_linear") for seed in (0, 1, 2)]
    if any(carried_out(preset, seed=seed)[0].throttled for preset, seed in runs):
        pytest.skip("the clocks were held down")

    def median_us(preset, word):
        found = []
        for seed in (0, 1, 2):
            found += [us for name, (_, us) in kernels(preset, seed=seed).items() if word in name]
        assert len(found) == 3, f"{word} names {found}"
        return statistics.median(found)

    figures = {
        ("03_simple_mlp", "nvjet_sm90_tst_256x128_64x4_1x2_h_bz_coopA_TNT"): 56.3,
        ("03_simple_mlp", "nvjet_sm90_tst_192x128_64x5_1x2_h_bz_coopB_TNT"): 51.9,
        ("03_simple_mlp", "BinaryFunctor"): 36.4,
        ("03_kernels_mlp", "_geglu_tanh_forward_kernel"): 44.3,
        ("02_linear", "bias"): 2.72,
    }
    for (preset, word), wanted in figures.items():
        assert median_us(preset, word) == pytest.approx(wanted, rel=0.05, abs=0.2), word
    # Within a process this one keeps to 1%; from process to process it has been 29.6 to 33.0 at the same clocks.
    assert 28.3 <= median_us("03_simple_mlp", "Gelu") <= 34.0


def test_the_compile_lottery_is_told():
    manifest, _ = carried_out("03_simple_mlp", backend="compile")
    warm = [one for one in manifest.compiles if one.process == "warm"]
    assert len(warm) == 3
    for one in manifest.compiles:
        (kernel,) = one.kernels
        assert kernel.name.startswith("triton_poi_fused")
        assert len(kernel.candidates) >= 2
        assert kernel.chosen in {candidate.config for candidate in kernel.candidates}
        assert kernel.chosen == min(kernel.candidates, key=lambda c: c.tuner_us or 1e9).config
        assert kernel.true_us.n == manifest.workload.steps
        assert kernel.grid and kernel.block
        if manifest.device.name == "NVIDIA H200":
            assert kernel.true_us.median == pytest.approx(37.0, rel=0.06) or kernel.true_us.median == pytest.approx(
                55.6, rel=0.05
            )
    fused = next(source for source in manifest.sources if source.language == "triton")
    assert {"gelu", "mul"} <= set(fused.source_nodes)


@pytest.mark.parametrize("backend", ["eager", "compile", "liger"])
def test_forward_and_backward(backend):
    manifest, tables = carried_out("03_simple_mlp", backend=backend, passes="fwd_bwd")
    assert manifest.status == "ok", manifest.failure
    assert headline(tables, None).kernels_per_step >= 11
    assert len(manifest.errors) == 5
    assert max(error.relative for error in manifest.errors) < 1e-2


def test_a_run_twice_needs_the_same_memory():
    peaks = {carried_out("03_simple_mlp", seed=seed)[0].peak_memory_bytes for seed in (5, 6, 7)}
    assert max(peaks) - min(peaks) < 1_000_000
    compiled, _ = carried_out("03_simple_mlp", backend="compile")
    assert compiled.peak_memory_bytes < min(peaks), "the fused kernel saves an intermediate"


def test_what_stands_beside_the_profile():
    manifest, _ = carried_out("03_simple_mlp")
    assert statistics.median(manifest.graph_replay_us.values) <= 1.03 * statistics.median(manifest.step_us.values)
    assert len(manifest.step_us.values) >= 20
    assert [sample.sm_mhz > 0 for sample in manifest.step_clocks] == [True]
    assert len(manifest.graph_replay_us.values) == 50, manifest.graph_replay_why
    assert manifest.load.seconds >= 1
    assert len(manifest.load.clocks) >= 10
    assert manifest.peak_memory_bytes > 100_000_000
    assert manifest.other_processes is not None
    assert manifest.device.driver


def test_out_of_memory_is_a_result_and_memory_comes_back(monkeypatch):
    import torch

    from core.bench import machine, run

    before = torch.cuda.memory_allocated()
    monkeypatch.setattr(machine, "free_memory_bytes", lambda device: None)
    too_big = with_changes(from_preset("03_simple_mlp"), batch=1 << 20, intermediate=1 << 16)
    manifest = read_manifest(run.run(too_big, protocol_for(too_big), lambda *said: None))
    assert manifest.failure.kind == "out_of_memory"
    assert torch.cuda.memory_allocated() <= before + 10_000_000
    small = with_changes(from_preset("02_linear"), batch=128)
    assert read_manifest(run.run(small, protocol_for(small), lambda *said: None)).status == "ok"


def test_a_lost_cuda_context_is_a_result_and_the_next_run_works():
    pytest.importorskip("distributed")
    from core.engine import Engine

    engine = Engine(extra_path=(Path(__file__).parent,))
    try:
        order = json.dumps(
            {"workload": _plain(from_preset("02_linear")), "protocol": _plain(protocol_for(from_preset("02_linear")))}
        ).encode()
        lost = _ended(engine, engine.submit("gpu_tasks:lose_context", order, key="a", title="lost"))
        assert read_manifest(lost.result).failure.kind == "cuda_error", read_manifest(lost.result).failure
        after = _ended(engine, engine.submit("core.bench.tasks:run_workload", order, key="b", title="after"))
        assert after.state == "done", after.failure
        assert read_manifest(after.result).status == "ok"
    finally:
        engine.close()


def _plain(value):
    import msgspec

    return msgspec.to_builtins(value)


def _ended(engine, job_id):
    import time

    end = time.monotonic() + 120
    while engine.job(job_id).state in ("queued", "running") and time.monotonic() < end:
        time.sleep(0.05)
    return engine.job(job_id)
