"""What the shipped recordings say: the article's truths, and that every one of them computed its layer."""

import re

import pytest

from core.analysis.bound import OVERHEAD_BOUND
from core.analysis.kernels import kernel_table
from core.analysis.numerics import Difference, mismatch
from core.analysis.remarks import remarks
from core.shipped import FIRST_BACKENDS, shipped
from core.store import runfile
from core.store.store import RECORDINGS, Store
from core.trace import read_trace
from core.ui import stack
from core.workload import from_preset, layer_of, make, without_backend


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return Store(tmp_path_factory.mktemp("home"))


def kernels(store, workload):
    """(name, family, median µs) of each kernel of a recorded step, in order."""
    entry = next(entry for entry in store.of(workload) if entry.recorded)
    table = kernel_table(read_trace(runfile.read_trace_bytes(entry.path)), by=("name",))
    return list(zip(table["name"], table["family"], table["median_us"], strict=True))


def test_they_are_real_runs_of_the_shipped_set(store):
    named = {one.workload for one in shipped()}
    entries = store.entries()
    assert {entry.head.workload for entry in entries} <= named
    assert len({entry.head.workload for entry in entries}) > 0.98 * len(named)
    assert sum(path.stat().st_size for path in RECORDINGS.glob("*.zip")) < 20_000_000
    for entry in entries:
        head = entry.head
        assert (head.device.name, head.status) == ("NVIDIA H200", "ok")
        assert head.device.driver and head.versions["torch"] and head.created > "2026"


def test_every_one_of_them_computed_its_layer(store):
    for entry in store.entries():
        manifest = entry.manifest
        assert manifest.errors, entry.path.name
        found = [Difference(e.of, e.relative, e.finite) for e in manifest.errors]
        assert mismatch(found, manifest.workload.dtype) is None, entry.path.name


@pytest.mark.parametrize("matrix_bias", ["on", "off"])
def test_a_matrix_bias_is_copied_and_a_vector_goes_into_the_epilogue(store, matrix_bias):
    eager = kernels(store, from_preset("matmul_add_4096", matrix_bias=matrix_bias))
    assert [family for _, family, _ in eager if family != "fill"] == ["gemm", "elementwise"]
    compiled = kernels(store, from_preset("matmul_add_4096", matrix_bias=matrix_bias, backend="compile"))
    names = [name for name, family, _ in compiled if family != "fill"]
    if matrix_bias == "on":
        assert names[0].startswith("Memcpy DtoD") and "_badd_" in names[1] and len(names) == 2
    else:
        assert "_bias_" in names[0] and len(names) == 1


def test_the_lone_linear_holds_the_mlps_gate(store):
    alone = kernels(store, from_preset("mlp_gate"))
    in_mlp = kernels(store, from_preset("03_simple_mlp"))
    gate = next((name, us) for name, family, us in in_mlp if family == "gemm")
    own = next((name, us) for name, family, us in alone if family == "gemm")
    assert own[0] == gate[0]
    assert own[1] == pytest.approx(gate[1], rel=0.06)


def test_this_card_is_not_the_articles(store):
    """On an A100 Inductor and Liger are alike; here one compile is ahead of Liger and the next is behind it."""
    fused = store.of(from_preset("03_simple_mlp", backend="compile"))[0].manifest.compiles
    times = {one.process: one.kernels[0].true_us.median for one in fused}
    liger = next(us for name, _, us in kernels(store, from_preset("03_kernels_mlp")) if "geglu" in name)
    assert times["warm"] < 0.9 * liger < liger < 0.9 * times["fresh"]


def test_ligers_geglu_pays_for_padding_its_rows_to_the_next_power_of_two(store):
    wide = {"layer": "geglu_mlp", "batch": 64, "seq": 128, "hidden": 4096, "intermediate": 11008}
    own = {b: kernels(store, make(wide | {"backend": b})) for b in ("compile", "liger")}
    times = {b: sum(us for _, family, us in found if family in ("fused", "liger")) for b, found in own.items()}
    assert times["liger"] > 1.3 * times["compile"]


def test_what_the_remarks_say_of_every_recorded_stack_fits_their_runs(store):
    groups = {}
    for entry in store.entries():
        groups.setdefault(without_backend(entry.head.workload), []).append(entry)
    told = 0
    for entries in groups.values():
        runs = [stack._read(entry) for entry in entries if entry.head.workload.backend in FIRST_BACKENDS]
        roles = layer_of(entries[0].head.workload).roles
        for sentence in remarks(runs, roles):
            told += 1
            assert not re.search(r"\b(nan|0%|None)\b", sentence), sentence
            for run in runs:
                if f"{run.title} waits for launches" in sentence:
                    assert run.bound.verdict == OVERHEAD_BOUND
                if run.setting.doubt and " least " in sentence:
                    assert run.title not in sentence
    assert told > 100
