"""Series of a sweep on a real GPU: Liger's JIT, CUDA graphs, an out-of-memory point, and a visitor's run in between."""

import statistics

import pytest

from core.store import runfile
from core.store.manifest import protocol_for
from core.sweep import make_sweep, plan
from core.sweep_order import point_order
from core.workload import make

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(600)]
MLP = {"layer": "geglu_mlp", "batch": 16, "seq": 128, "hidden": 512, "intermediate": 1024, "steps": 5}


def swept(between=None, **fields):
    """The manifests of a sweep whose series each have a process of their own; `between` is called between two points."""
    from core.bench.series_host import SeriesHost

    sweep = make_sweep({**MLP, **fields})
    hosts, known, found = {}, {}, []
    try:
        for task in plan(sweep):
            host = hosts.setdefault(task.process, SeriesHost())
            data = host.perform(point_order("swept", sweep, task, known), lambda text, done, total: None)
            manifest = runfile.read_manifest(data)
            known[task.order] = manifest.point.call
            found.append(manifest)
            if between is not None:
                between()
    finally:
        for host in hosts.values():
            host.close()
    return found


def compiled(found):
    return [[one.entry for one in manifest.point.call.compiles] for manifest in found]


def test_liger_compiles_for_a_new_intermediate_size_alone():
    found = swept(backends="liger", axis="batch", values="16,8,4,16")
    assert [len(one.point.call.jits) for one in found] == [1, 0, 0, 0]
    found = swept(backends="liger", axis="seq", values="128,64,77")
    assert [len(one.point.call.jits) for one in found] == [1, 0, 0]
    found = swept(backends="liger", axis="intermediate", values="1024,1536,2048,1024")
    assert [len(one.point.call.jits) for one in found] == [1, 1, 1, 0]
    jit = found[0].point.call.jits[0]
    assert "geglu" in jit.kernel and "1024" in jit.constexprs.values() and jit.seconds > 0.01
    assert all(one.point.call.served_by == () and not one.point.call.ran_eager for one in found)


def test_reduce_overhead_records_a_graph_for_each_size_and_none_the_second_time():
    found = swept(backends="reduce_overhead", axis="batch", values="64,32,16,8,64,32,16,8")
    assert sum(len(one) for one in compiled(found)) == 2
    assert [one.point.call.cuda_graphs for one in found[:4]] == [1, 1, 1, 1]
    assert all(len(one.point.call.graph_calls_s) == 2 and min(one.point.call.graph_calls_s) > 0 for one in found[:4])
    assert sum(one.point.call.cuda_graphs for one in found) == 5  # 64 again, when the dynamic entry takes it over
    again = swept(backends="reduce_overhead", axis="batch", values="64,32,16,8,64,64,32,16,8")
    assert [one.point.call.cuda_graphs for one in again[5:]] == [0, 0, 0, 0]
    assert [one.point.call.graph_calls_s for one in again[5:]] == [(), (), (), ()]


def test_the_batch_on_a_gpu_compiles_twice_and_then_never():
    found = swept(backends="compile", axis="batch", values="4,8,16,1")
    assert compiled(found) == [["0/0"], ["0/1"], [], ["0/2"]]
    assert [one.status for one in found] == ["ok"] * 4
    activation = [one.point.role_us["activation"].median for one in found]
    assert activation[0] < activation[2]


def test_an_out_of_memory_point_is_marked_and_the_next_smaller_one_succeeds():
    import torch

    from core.bench import torch_internals
    from core.bench.series import Life

    fields = {**MLP, "backends": "eager", "axis": "batch", "values": "16,4096,16"}
    sweep = make_sweep(fields)
    life = Life(sweep, "eager")
    torch.cuda.empty_cache()
    in_all = torch.cuda.mem_get_info()[1]
    tasks = plan(sweep)
    life._check_memory = lambda workload: None  # what a neighbour takes between the check and the step
    torch.cuda.set_per_process_memory_fraction(min(1.0, 2e9 / in_all))
    try:
        with life.open():
            base = torch.cuda.memory_allocated()
            manifests = []
            for task in tasks:
                data = life.perform(point_order("swept", sweep, task, {}), lambda text: None)
                manifests.append(runfile.read_manifest(data))
                if manifests[-1].failure is not None:
                    torch_internals.clear_workspaces()
                    assert torch.cuda.memory_allocated() <= base
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
    assert [one.status for one in manifests] == ["ok", "failed", "ok"], [one.failure for one in manifests]
    assert manifests[1].failure.kind == "out_of_memory"


def test_a_visitors_run_between_two_points_changes_nothing_in_the_ledger():
    from core.bench.run import run

    other = make({**MLP, "backend": "compile", "batch": 7, "steps": 2})

    def visit():
        run(other, protocol_for(other, light=True), lambda text, done, total: None)

    fields = {"backends": "compile", "axis": "batch", "values": "4,8,16,32"}
    alone, visited = swept(**fields), swept(between=visit, **fields)
    assert compiled(alone) == compiled(visited) == [["0/0"], ["0/1"], [], []]
    assert [one.point.call.served_by for one in alone] == [one.point.call.served_by for one in visited]


def test_a_map_is_measured_in_interleaved_rounds_at_like_clocks():
    fields = {"kind": "map", "values": "16", "axis": "batch", "axis2": "intermediate", "values2": "3072"}
    found = swept(backends="eager,compile,liger", **fields)
    assert [one.workload.backend for one in found] == ["eager", "compile", "liger"] * 3
    assert all(one.status == "ok" and one.peak_memory_bytes > 0 for one in found)
    eager = [one.point.kernel_time_us.median for one in found if one.workload.backend == "eager"]
    assert max(eager) < 1.15 * min(eager)
    assert all(statistics.median(one.step_us.values) > 0 and one.step_clocks for one in found)
    assert all(
        one.point.first_call_memory_bytes >= one.peak_memory_bytes > 0 for one in found if one.point.call.compiles
    )
