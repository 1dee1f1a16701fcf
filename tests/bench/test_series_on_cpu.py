"""Series of a sweep on this CPU: what compiles, what is reused and what runs eager, as sizes change."""

import contextlib
import subprocess
import sys

import pytest
import torch

from core.bench import compiling, gpu, points, series_host
from core.bench.series import LedgerError, Life
from core.store import runfile
from core.sweep import make_sweep, plan
from core.sweep_order import point_order
from core.workload import WorkloadError

SMALL = {"layer": "geglu_mlp", "seq": "6", "hidden": "16", "intermediate": "32", "dtype": "fp32", "steps": "2"}


def swept(**fields):
    """The manifests of a sweep of one process, measured in this one."""
    axis = {} if fields.get("kind") == "traffic" else {"axis": "batch"}
    sweep = make_sweep({**SMALL, **axis, **fields})
    torch.compiler.reset()
    tasks = plan(sweep)
    life = Life(sweep, tasks[0].process)
    found = []
    with life.open():
        for task in tasks:
            data = life.perform(point_order("swept", sweep, task, {}), lambda text: None)
            found.append(runfile.read_manifest(data))
    return found


def calls(found):
    return [one.point.call for one in found]


def entries(call):
    return [one.entry for one in call.compiles if not one.backward]


def test_a_batch_that_changes_becomes_dynamic_and_then_compiling_stops():
    found = calls(swept(backends="compile", values="4,8,16,1,8"))
    assert [entries(one) for one in found] == [["0/0"], ["0/1"], [], ["0/2"], []]
    assert [one.served_by for one in found] == [("0/0",), ("0/1",), ("0/1",), ("0/2",), ("0/1",)]
    assert not any(one.ran_eager for one in found)
    first, second = found[0].compiles[0], found[1].compiles[0]
    assert first.misses == () and first.dynamic_dims == ()
    assert [(miss.entry, miss.words) for miss in second.misses] == [
        ("0/0", "tensor 'x' size mismatch at index 0. expected 4, actual 8")
    ]
    assert [(dim.tensor, dim.dim, dim.size) for dim in second.dynamic_dims] == [("x", 0, "batch")]
    assert second.guard_count > 0 and len(second.guards) > 10
    assert second.disk_cache == "miss" and second.stages_s["total"] > 0
    assert [miss.entry for miss in found[3].compiles[0].misses] == ["0/1", "0/0"]


def test_a_changed_sequence_is_one_more_compile():
    rows = "4,6,1;8,6,1;16,6,1;8,5,5;4,12,2"
    found = swept(kind="traffic", backends="compile", rows=rows)
    assert [entries(one) for one in calls(found)] == [["0/0"], ["0/1"], [], ["0/2"], []]
    assert [one.point.values for one in found] == [(4, 6), (8, 6), (16, 6), (8, 5), (4, 12)]
    assert {dim.size for dim in calls(found)[3].compiles[0].dynamic_dims} == {"batch", "seq"}


def test_static_shapes_compile_every_size_until_the_limit_and_then_run_eager_silently():
    found = swept(backends="compile_static", values="2,3,4,5,6,7,8,9,10,11,2")
    told = calls(found)
    assert [len(entries(one)) for one in told] == [1] * 8 + [0, 0, 0]
    assert [one.ran_eager for one in told] == [False] * 8 + [True, True, False]
    assert [one.limit for one in told] == [None] * 8 + ["recompile_limit", "recompile_limit", None]
    assert [attempt.ok for attempt in told[8].attempts] == [False] and told[9].attempts == ()
    assert told[10].served_by == ("0/0",)


def test_a_limit_of_ones_own():
    told = calls(swept(backends="compile_static", values="2,3,4", limit="2"))
    assert [one.ran_eager for one in told] == [False, False, True]


def test_dynamic_shapes_compile_once_and_once_more_for_size_1():
    told = calls(swept(backends="compile_dynamic", values="4,8,16,1,2"))
    assert [entries(one) for one in told] == [["0/0"], [], [], ["0/1"], []]


def test_a_hidden_change_always_recompiles_and_isolated_it_never_counts_against_the_limit():
    shared = calls(swept(backends="compile", axis="hidden", batch="4", values="16,24,32", limit="2"))
    assert [len(entries(one)) for one in shared] == [1, 1, 0] and shared[2].limit == "recompile_limit"
    isolated = calls(swept(backends="compile", axis="hidden", batch="4", values="16,24,32", limit="2", mode="isolated"))
    assert [entries(one) for one in isolated] == [["0/0"]] * 3
    assert [one.compiles[0].misses for one in isolated] == [()] * 3


def test_forward_and_backward_are_told_apart():
    told = calls(swept(backends="compile", values="4,8", passes="fwd_bwd"))
    # Where dimensions are dynamic, PyTorch compiles the backward graph together with the forward one.
    assert [[one.backward for one in call.compiles] for call in told] == [[False, True], [False]]
    assert [[len(one.code) for one in call.compiles] for call in told] == [[1, 1], [2]]
    assert all(one.stages_s["total"] > 0 for call in told for one in call.compiles)


def test_marking_a_dimension_that_the_model_fixes_is_one_sentence_and_the_sweep_goes_on():
    found = swept(backends="compile", axis="hidden", batch="4", values="16,24", mark="on")
    assert [one.status for one in found] == ["failed", "failed"]
    assert found[0].failure.kind == "fixed_dim"
    assert found[0].failure.sentence.startswith(
        "hidden (dimension 2 of x) was marked dynamic, but the model fixes it to 16"
    )
    found = swept(backends="compile", axis="intermediate", batch="4", values="32", mark="on")
    assert found[0].failure.sentence.startswith("No input dimension is intermediate alone")


def test_marking_the_batch_spares_the_recompile():
    found = swept(backends="compile", values="4,8,16", mark="on")
    assert [entries(one) for one in calls(found)] == [["0/0"], [], []]
    assert [(one.tensor, one.dim) for one in found[0].point.marked] == [("x", 0)]


def test_a_warm_disk_cache_is_hit():
    cold, warm = (calls(swept(backends="compile", values="4,8", cache=cache)) for cache in ("cold", "warm"))
    assert [one.compiles[0].disk_cache for one in cold] == ["miss", "miss"]
    assert [one.compiles[0].disk_cache for one in warm] == ["hit", "hit"]


def test_a_map_compiles_anew_in_every_round_and_leaves_no_weights_behind():
    fields = {"kind": "map", "axis": "batch", "values": "2,4", "axis2": "intermediate", "values2": "32,48"}
    found = swept(backends="eager,compile", **fields)
    assert len(found) == 2 * 2 * 3 * 2
    compiled = [one for one in found if one.workload.backend == "compile"]
    assert all(entries(one.point.call) == ["0/0"] and one.compiles[0].cold for one in compiled)
    assert [(one.point.index, one.point.round, one.workload.backend) for one in found[:4]] == [
        (0, 0, "eager"),
        (0, 0, "compile"),
        (0, 1, "eager"),
        (0, 1, "compile"),
    ]


def test_what_a_point_holds():
    (one,) = swept(backends="eager", values="4")
    point = one.point
    assert one.id == "swept-0000" and not one.answers and one.status == "ok"
    assert {(dim.tensor, dim.dim, dim.size) for dim in point.dims} >= {
        ("x", 0, "batch"),
        ("x", 1, "seq"),
        ("x", 2, "hidden"),
        ("self._modules['gate']._parameters['weight']", 0, "intermediate"),
    }
    assert {kernel.role for kernel in point.kernels} == {"gate", "up", "activation", "down"} == set(point.role_us)
    assert point.kernel_time_us.n == 2 and len(one.step_us.values) >= 5
    assert max(error.relative for error in one.errors) < 1e-5
    assert point.call.attempts == () and not point.call.ran_eager


def test_a_size_that_does_not_fit_fails_alone():
    found = swept(backends="eager", axis="intermediate", batch="1", values=f"32,{1 << 24},32", hidden="65536")
    assert [one.status for one in found] == ["failed" if at == 1 else "ok" for at in range(3)]
    assert "choose smaller sizes" in found[1].failure.sentence


def test_a_process_started_anew_repeats_no_size_that_did_not_fit(monkeypatch):
    sweep = make_sweep({**SMALL, "axis": "batch", "backends": "compile", "values": "4,100000,8,16"})
    called = []
    whole, check = Life._called, Life._check_memory

    def counting(self, task, *, cold):
        called.append(task.index)
        return whole(self, task, cold=cold)

    def small(self, workload):
        if dict(workload.sizes)["batch"] > 1000:
            raise WorkloadError("These sizes need more than there is; choose smaller sizes.")
        check(self, workload)

    monkeypatch.setattr(Life, "_called", counting)
    monkeypatch.setattr(Life, "_check_memory", small)
    known, found = {}, []
    for tasks in (plan(sweep)[:3], plan(sweep)[3:]):  # two processes, one after the other
        torch.compiler.reset()
        life = Life(sweep, "compile")
        with life.open():
            for task in tasks:
                data = life.perform(point_order("swept", sweep, task, known), lambda text: None)
                found.append(runfile.read_manifest(data))
                known[task.order] = found[-1].point.call
    assert [one.status for one in found] == ["ok", "failed", "ok", "ok"]
    assert called == [0, 2, 0, 2, 3]
    assert [entries(one.point.call) for one in (found[0], found[2], found[3])] == [["0/0"], ["0/1"], []]


def test_a_call_that_fails_keeps_what_it_compiled(monkeypatch):
    def failing(self, step, device, calls):
        step()
        raise RuntimeError("not enough memory: you tried to allocate")

    monkeypatch.setattr(compiling, "warm_up", lambda step, device, calls: failing(None, step, device, calls))
    found = swept(backends="compile", values="4")
    assert found[0].failure.kind == "out_of_memory"
    assert entries(found[0].point.call) == ["0/0"] and found[0].point.call.served_by is None


def test_a_call_after_the_first_that_fails_keeps_what_the_first_compiled(monkeypatch):
    whole, made = points.timed_call, []

    def failing(step, device):
        made.append(device)
        if len(made) == 3:  # the second point's first call after its first
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB")
        return whole(step, device)

    monkeypatch.setattr(points, "timed_call", failing)
    found = swept(backends="compile", values="4,8,16")
    assert [one.status for one in found] == ["ok", "failed", "ok"]
    assert found[1].failure.kind == "out_of_memory"
    assert [entries(one.point.call) for one in found] == [["0/0"], ["0/1"], []]


def test_a_repeat_that_does_not_fit_is_told_and_blames_no_point(monkeypatch):
    sweep = make_sweep({**SMALL, "axis": "batch", "backends": "compile", "values": "4,8"})
    first = swept(backends="compile", values="4,8")[0]

    def full(*_):
        raise torch.OutOfMemoryError("CUDA out of memory.")

    life = Life(sweep, "compile")
    with life.open():
        monkeypatch.setattr("core.bench.series.build", full)
        with pytest.raises(LedgerError, match="repeating call 1 of 1 ran out of memory, though it fitted before"):
            life.perform(point_order("swept", sweep, plan(sweep)[1], {0: first.point.call}), lambda text: None)


class TestAProcessOfItsOwn:
    """The same, in the process that a series owns."""

    SWEEP = make_sweep({**SMALL, "axis": "batch", "backends": "compile", "values": "4,8,16"})

    def perform(self, host, at, known, said=None):
        order = point_order("own", self.SWEEP, plan(self.SWEEP)[at], known)
        data = host.perform(order, lambda text, done, total: said.append(text) if said is not None else None)
        manifest = runfile.read_manifest(data)
        known[at] = manifest.point.call
        return manifest

    def test_killed_in_between_it_repeats_the_finished_calls_and_goes_on(self):
        host, known = series_host.SeriesHost(), {}
        try:
            self.perform(host, 0, known)
            self.perform(host, 1, known)
            host._process.kill()
            host._process.wait()
            said = []
            third = self.perform(host, 2, known, said)
            assert third.point.replayed == 2 and third.point.call.attempts == ()
            assert third.point.call.served_by == ("0/1",)
            assert "repeating finished call 2 of 2, unmeasured" in said
        finally:
            host.close()

    def test_a_ledger_that_cannot_be_repeated_is_told(self):
        host, known = series_host.SeriesHost(), {}
        try:
            self.perform(host, 0, known)
            wrong = {**known, 1: known[0]}  # as if the second size had compiled entry 0/0
            host.close()
            with pytest.raises(series_host.SeriesError) as caught:
                self.perform(host, 2, wrong)
            assert caught.value.kind == "ledger" and "call 2 of 2 compiled something else" in caught.value.sentence
        finally:
            host.close()

    def test_it_waits_while_another_process_measures_on_the_device(self):
        host, said = series_host.SeriesHost(), []

        def report(text, done, total):
            said.append(text)
            if text == "waiting for another run on this device":
                held.close()

        held = contextlib.ExitStack()
        held.enter_context(gpu.exclusive(lambda: None))
        try:
            host.perform(point_order("own", self.SWEEP, plan(self.SWEEP)[0], {}), report)
        finally:
            host.close()
        assert said.index("waiting for another run on this device") < said.index("calling it for the first time")

    def test_its_death_in_the_middle_is_told_with_its_last_words(self):
        host = series_host.SeriesHost()

        def kill(text, done, total):
            if text == "calling it for the first time":
                host._process.kill()

        try:
            with pytest.raises(series_host.SeriesError) as caught:
                host.perform(point_order("own", self.SWEEP, plan(self.SWEEP)[0], {}), kill)
            assert caught.value.kind == "crashed" and "signal 9" in caught.value.sentence
        finally:
            host.close()


def test_the_host_imports_no_torch():
    code = "import sys, core.bench.series_host; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
