"""What a resumed sweep measures again: points whose process died, and what later points of their list make of that."""

import pytest

from core.analysis.recompiles import ledger
from core.conductor import CANCELLED, DONE, FAILED, Conductor, PointError, lost
from core.store import runfile
from core.store.sweepfacts import facts
from core.store.sweeps import Sweeps
from core.sweep import make_sweep
from core.sweep_order import point_id
from tests.sweeps import BATCHES, MAP
from tests.test_conductor import Bench, crashed

SWEEP = make_sweep(BATCHES)


@pytest.fixture
def sweeps(home, tmp_path):
    return Sweeps(home, tmp_path / "none")


def stopped_with(sweeps, kind, sweep=SWEEP):
    """A sweep whose point 5 failed so, and which was stopped before point 7."""
    entry = sweeps.create(sweep)
    wrong = {5: PointError(kind, "It died."), 7: PointError("engine", "The engine is closed.")}
    assert Conductor(sweeps, entry, Bench(wrong)).run().state == FAILED
    return entry


@pytest.mark.parametrize("kind", ["crashed", "timed_out"])
def test_a_point_whose_process_died_is_measured_again_and_replaced(sweeps, kind):
    entry, bench = stopped_with(sweeps, kind), Bench()
    assert sweeps.manifests(entry)[5].failure.kind == kind
    ended = Conductor(sweeps, entry, bench).run()
    assert (ended.state, ended.done, bench.measured) == (DONE, 16, [5, *range(7, 16)])
    again = sweeps.manifests(sweeps.get(entry.head.id))[5]
    assert (again.failure, again.id) == (None, point_id(entry.head.id, 5))
    assert runfile.read_trace_bytes(entry.folder / "0005.run.zip") is not None


def test_a_whole_sweep_tries_its_lost_points_again(sweeps):
    entry = sweeps.create(SWEEP)
    Conductor(sweeps, entry, Bench({5: PointError("timed_out", "It took too long.")})).run()
    whole = sweeps.get(entry.head.id)
    assert whole.complete and lost(sweeps.manifests(whole)) == {5}
    bench = Bench()
    assert Conductor(sweeps, whole, bench).run().state == DONE
    again = sweeps.manifests(sweeps.get(entry.head.id))
    (own,) = [one for one in facts(whole, again) if one.name == again[5].workload.backend]
    outcomes = [row.outcome for row in ledger([own], SWEEP.axes, shared=True)]
    assert ["measured again after later sizes" in outcome for outcome in outcomes] == [False, True, False, False]
    assert own.points[1].call is None and own.points[1].kernel_time_us is not None
    assert (bench.measured, lost(again), again[5].failure, again[5].point.apart) == ([5], frozenset(), None, True)


def test_later_points_do_not_build_on_what_they_never_lived_with(sweeps):
    entry, bench = stopped_with(sweeps, "crashed"), Bench({8: PointError("engine", "The engine is closed.")})
    Conductor(sweeps, entry, bench).run()
    done = {order.task.order: [one.order for one in order.done] for order in bench.orders}
    assert (done[5], done[7]) == ([4], [4, 6])
    again = sweeps.manifests(entry)[5]
    assert again.point.apart and "Measured again after later sizes" in again.notes[-1]
    assert not any(one.point.apart for one in sweeps.manifests(entry) if one.point.order != 5)
    bench = Bench()
    Conductor(sweeps, entry, bench).run()
    assert bench.measured == list(range(8, 16)), "neither measured once more"


def test_a_point_that_died_last_joins_its_list(sweeps):
    entry = sweeps.create(SWEEP)
    Conductor(sweeps, entry, Bench({5: crashed(), 6: PointError("engine", "The engine is closed.")})).run()
    bench = Bench()
    Conductor(sweeps, entry, bench).run()
    done = {order.task.order: [one.order for one in order.done] for order in bench.orders}
    assert (done[5], done[6]) == ([4], [4, 5]) and not sweeps.manifests(entry)[5].point.apart


def test_the_old_file_stays_until_the_new_one_is_there(sweeps):
    entry = stopped_with(sweeps, "crashed")
    before = (entry.folder / "0005.run.zip").read_bytes()
    ended = Conductor(sweeps, entry, Bench({5: PointError("engine", "The engine is closed.")})).run()
    assert (ended.state, ended.done) == (FAILED, 6)
    assert (entry.folder / "0005.run.zip").read_bytes() == before


def test_a_win_map_knows_no_earlier_points(sweeps):
    entry, bench = stopped_with(sweeps, "crashed", make_sweep(MAP)), Bench()
    assert Conductor(sweeps, entry, bench).run().state == DONE
    assert bench.measured[:2] == [5, 7] and not sweeps.manifests(entry)[5].point.apart


def test_a_point_that_failed_in_its_process_is_not_measured_again(sweeps):
    entry = sweeps.create(SWEEP)
    Conductor(sweeps, entry, Bench({7: PointError("engine", "The engine is closed.")})).run()
    assert sweeps.manifests(entry)[3].failure.kind == "out of memory"
    bench = Bench()
    assert Conductor(sweeps, entry, bench).run().state not in (CANCELLED, FAILED)
    assert bench.measured == list(range(7, 16))
