"""What the shipped sweeps say: their ledgers, and what is read off them."""

import math
import statistics

import pytest

from core.analysis.ledger import RECOMPILE_LIMIT
from core.analysis.padding import padding
from core.analysis.sizes import KERNEL_TIME
from core.analysis.traffic import answer
from core.analysis.winmap import UNKNOWN, win_map
from core.shipped_sweeps import shipped_sweeps
from core.store.sweepfacts import facts
from core.store.sweeps import SHIPPED, Sweeps
from core.workload import DTYPES, layer_of


@pytest.fixture(scope="module")
def sweeps(tmp_path_factory):
    return Sweeps(tmp_path_factory.mktemp("home"))


def of(sweeps, layer, axis, **wanted):
    """The longest recorded sweep of a layer along an axis, and its points' calls by backend, in order."""
    along = [
        entry
        for entry in sweeps.entries()
        if (entry.head.sweep.base.layer, entry.head.sweep.axes) == (layer, (axis,))
        and all(getattr(entry.head.sweep, name) == value for name, value in wanted.items())
    ]
    return with_calls(sweeps, max(along, key=lambda entry: len(entry.head.sweep.points)))


def with_calls(sweeps, entry):
    manifests = sweeps.manifests(entry)
    calls = {
        name: [m.point.call for m in manifests if m.workload.backend == name] for name in entry.head.sweep.backends
    }
    return entry, manifests, calls


def compiled(calls):
    return [len([one for one in call.compiles if not one.backward]) for call in calls]


def test_they_are_real_runs_of_the_shipped_set(sweeps):
    named = set(shipped_sweeps())
    entries = sweeps.entries()
    assert {entry.head.sweep for entry in entries} == named and not sweeps.problems()
    assert len(entries) == len(named) and all(entry.complete for entry in entries)
    assert sum(path.stat().st_size for path in SHIPPED.rglob("*") if path.is_file()) < 12_000_000
    for entry in entries:
        for manifest in sweeps.manifests(entry):
            assert (manifest.device.name, manifest.status) == ("NVIDIA H200", "ok")
            assert manifest.device.driver and manifest.versions["torch"] and manifest.created > "2026"
            tolerance = {"bf16": 1e-2}[manifest.workload.dtype]
            assert all(error.finite and (error.relative or 0) < tolerance for error in manifest.errors)
    assert set(DTYPES) >= {entry.head.sweep.base.dtype for entry in entries}


GATED = pytest.mark.parametrize("layer", ["geglu_mlp", "swiglu_mlp"])


@GATED
def test_a_changing_batch_compiles_twice_and_once_more_for_size_1(sweeps, layer):
    entry, _, calls = of(sweeps, layer, "batch", mode="shared")
    assert [point[0] for point in entry.head.sweep.points][:4] == [64, 32, 16, 1]
    assert compiled(calls["compile"]) == [1, 1, 0, 1] + [0] * 8
    assert compiled(calls["compile_dynamic"]) == [1, 0, 0, 1] + [0] * 8
    assert compiled(calls["compile_static"]) == [1] * 8 + [0] * 4
    assert [one.ran_eager for one in calls["compile_static"]] == [False] * 8 + [True, True, False, False]
    assert calls["compile_static"][9].limit == RECOMPILE_LIMIT and calls["compile_static"][9].attempts == ()
    assert sum(len(one.jits) for one in calls["liger"]) == 1
    graphs = calls["reduce_overhead"]
    assert [one.cuda_graphs for one in graphs] == [1] * 11 + [0]
    assert all(bool(one.graph_calls_s) == bool(one.cuda_graphs) for one in graphs)


def test_a_changing_batch_of_linear_compiles_twice_and_weights_every_time(sweeps):
    _, _, calls = of(sweeps, "linear", "batch")
    assert compiled(calls["compile"]) == [1, 1] + [0] * 10
    assert compiled(calls["compile_dynamic"]) == [1] + [0] * 11
    assert [one.ran_eager for one in calls["compile_static"]] == [False] * 8 + [True, True, False, False]
    for axis in ("in_features", "out_features"):
        _, _, calls = of(sweeps, "linear", axis)
        assert compiled(calls["compile"]) == [1] * 8 + [0, 0]
        assert [one.ran_eager for one in calls["compile"]] == [False] * 8 + [True] * 2


def test_max_autotune_is_there_along_the_batch(sweeps):
    entries = [entry for entry in sweeps.entries() if "max_autotune" in entry.head.sweep.backends]
    assert {entry.head.sweep.axes for entry in entries} == {("batch",)}
    _, manifests, calls = with_calls(sweeps, entries[0])
    assert compiled(calls["max_autotune"]) == [1, 1, 0, 0]
    first = {name: calls[name][0].first_call_s for name in ("compile", "max_autotune")}
    assert first["max_autotune"] > 2 * first["compile"]
    assert all(manifest.step_clocks for manifest in manifests)


def test_the_traffic_ends_in_an_answer(sweeps):
    entry, manifests, calls = with_calls(sweeps, next(e for e in sweeps.entries() if e.head.sweep.kind == "traffic"))
    series, sweep = facts(entry, manifests, sweeps.spans_beside(entry)), entry.head.sweep
    found = answer(series, sweep.axes, len(sweep.points))
    assert found.use in sweep.backends and found.sentence.startswith("Use ")
    assert compiled(calls["compile_dynamic"]) == [1, 0, 0, 0, 0, 1] + [0] * 10
    assert sum(len(one.jits) for one in calls["liger"]) == 1


@GATED
def test_a_changing_sequence_becomes_dynamic_and_size_1_is_compiled_by_itself(sweeps, layer):
    entry, _, calls = of(sweeps, layer, "seq")
    assert entry.head.sweep.points[8] == (1,)
    assert compiled(calls["compile"]) == [1, 1] + [0] * 6 + [1, 0]
    assert compiled(calls["compile_dynamic"]) == [1] + [0] * 7 + [1, 0]
    assert sum(len(one.jits) for one in calls["liger"]) == 1


@GATED
def test_weights_that_change_compile_every_time_until_the_limit_and_liger_once_a_width(sweeps, layer):
    _, _, calls = of(sweeps, layer, "hidden")
    assert (
        compiled(calls["compile"]) == [1] * 8 + [0, 0] and [one.ran_eager for one in calls["compile"]][8:] == [True] * 2
    )
    assert sum(len(one.jits) for one in calls["liger"]) == 1
    _, _, calls = of(sweeps, layer, "intermediate", mode="isolated")
    assert compiled(calls["compile"]) == [1] * 10 and not any(one.ran_eager for one in calls["compile"])
    assert [len(one.jits) for one in calls["liger"]] == [1] * 10


def test_ligers_padding_costs_at_real_widths_and_the_gemms_are_untouched(sweeps):
    entry, manifests, _ = of(sweeps, "geglu_mlp", "intermediate", mode="isolated")
    layer = layer_of(entry.head.sweep.base)
    role = next(one for one in layer.roles if not one.matmul)
    rows = padding(facts(entry, manifests), entry.head.sweep.axes, role, width_name="intermediate")
    liger = {row.width: row for row in rows if row.series == "liger"}
    assert liger[11008].padded == 16384 and liger[11008].ratio > 1.5
    assert liger[4096].padded == 4096 and liger[4096].ratio < liger[11008].ratio
    for name in (one.name for one in layer.roles if one.matmul):
        times = {}
        for manifest in manifests:
            times.setdefault(manifest.point.values, []).append(manifest.point.role_us[name].median)
        assert statistics.median(max(found) / min(found) for found in times.values()) < 1.03


def test_swiglus_kernel_does_not_pay_for_its_padding(sweeps):
    entry, manifests, _ = of(sweeps, "swiglu_mlp", "intermediate", mode="isolated")
    role = next(one for one in layer_of(entry.head.sweep.base).roles if not one.matmul)
    rows = padding(facts(entry, manifests), entry.head.sweep.axes, role, width_name="intermediate")
    known = [row for row in rows if row.series == "liger" and row.ratio is not None]
    assert any(row.padded > row.width for row in known) and all(row.ratio < 1.1 for row in known)


@GATED
def test_every_matrix_product_is_a_yardstick_by_its_kernels(sweeps, layer):
    entry, manifests, _ = of(sweeps, layer, "batch", mode="shared")
    points = [point for one in facts(entry, manifests) for point in one.points]
    known = [point.products for point in points if point.products is not None]
    assert len(known) > 0.8 * len(points)
    assert all({role for role, _ in one.kernels} == {"gate", "up", "down"} and one.time_us > 5 for one in known)


def test_the_map_names_winners_and_says_where_it_cannot(sweeps):
    entry = next(entry for entry in sweeps.entries() if entry.head.sweep.kind == "map")
    assert len({point[0] for point in entry.head.sweep.points}) >= 8
    assert {11008, 13824, 14336} <= {point[1] for point in entry.head.sweep.points}
    cells = win_map(facts(entry, sweeps.manifests(entry)), entry.head.sweep.axes, time=KERNEL_TIME)
    assert len(cells) == 64 and entry.complete
    won = [cell for cell in cells if cell.winner]
    assert len(won) >= 15 and sum(cell.verdict != UNKNOWN for cell in cells) == 64
    assert all(math.isfinite(cell.margin) and cell.margin > 0.02 for cell in won)
    assert all(cell.words for cell in cells)
