"""Carrying a sweep out: in the plan's order, past points that fail, resumed, cancelled, and stopped by what no point can help."""

import threading
import time
from dataclasses import replace

import pytest

from core import sweep_order
from core.conductor import CANCELLED, CRASHES_MAX, DONE, FAILED, RUNNING, WAITING, Conductor, PointError
from core.conductor_jobs import execute_on
from core.engine.model import Failure, Job
from core.store import runfile, sweepfile
from core.store.manifest import Device
from core.store.sweepentry import conducting
from core.store.sweeps import Sweeps
from core.sweep import make_sweep, plan
from core.sweep_order import Done, point_id
from tests.sweeps import BATCHES, MAP, point_file

SWEEP = make_sweep(BATCHES)
TASKS = plan(SWEEP)


@pytest.fixture
def sweeps(home, tmp_path):
    return Sweeps(home, tmp_path / "none")


class Bench:
    """Measures by looking up what a sweep of tests.sweeps holds; `wrong` maps places in the plan to what goes wrong there."""

    def __init__(self, wrong=None, **changes):
        self.orders, self.wrong, self.changes = [], dict(wrong or {}), changes

    def __call__(self, order, report):
        self.orders.append(order)
        report("measuring", 0, 1)
        problem = self.wrong.get(order.task.order)
        if callable(problem):
            problem = problem()
        if problem is not None:
            raise problem
        return point_file(order.sweep_id, order.sweep, order.task, **self.changes)

    @property
    def measured(self):
        return [order.task.order for order in self.orders]


def crashed():
    return PointError("crashed", "The process that measured this point died (signal 9).", "its last words")


def test_every_point_is_measured_in_order_and_kept(sweeps):
    entry, bench = sweeps.create(SWEEP), Bench()
    ended = Conductor(sweeps, entry, bench).run()
    assert (ended.state, ended.done, ended.total, ended.problem, ended.seconds_left) == (DONE, 16, 16, None, None)
    assert bench.measured == [task.order for task in TASKS]
    assert sweeps.get(entry.head.id).complete
    assert [one.id for one in sweeps.manifests(entry)] == [point_id(entry.head.id, task.order) for task in TASKS]


def test_an_order_tells_what_its_process_compiled_before(sweeps):
    entry, bench = sweeps.create(SWEEP), Bench()
    Conductor(sweeps, entry, bench).run()
    static = [order for order in bench.orders if order.task.backend == "compile_static"]
    assert [order.done for order in static] == [
        (),
        (Done(8, "0/0 ok"),),
        (Done(8, "0/0 ok"), Done(9, "0/1 ok")),
        (Done(8, "0/0 ok"), Done(9, "0/1 ok"), Done(10, "0/2 limit")),
    ]
    assert [sweep_order.decode(sweep_order.encode(order)) for order in bench.orders] == bench.orders


def test_a_resumed_sweep_goes_on_where_it_was_left_and_repeats_a_damaged_point(sweeps):
    entry = sweeps.create(SWEEP)
    stopped = Conductor(sweeps, entry, Bench({6: PointError("engine", "The engine is closed.")})).run()
    assert (stopped.state, stopped.done, stopped.problem) == (FAILED, 6, "The engine is closed.")
    (entry.folder / sweepfile.name_of(1)).write_bytes(b"junk")
    bench = Bench()
    ended = Conductor(sweeps, sweeps.get(entry.head.id), bench).run()
    assert bench.measured == [1, *range(6, 16)]
    assert (ended.state, ended.done, len(sweeps.manifests(entry))) == (DONE, 16, 16)


def test_a_point_whose_process_died_is_tried_again(sweeps):
    entry, tries = sweeps.create(SWEEP), [crashed(), None]
    bench = Bench({5: lambda: tries.pop(0)})
    assert Conductor(sweeps, entry, bench).run().state == DONE
    assert bench.measured == [0, 1, 2, 3, 4, 5, 5, *range(6, 16)]
    assert sweeps.manifests(entry)[5].failure is None


@pytest.mark.parametrize(("kind", "tries"), [("crashed", 2), ("timed_out", 1)])
def test_a_point_that_cannot_be_measured_fails_alone_and_is_never_repeated(sweeps, kind, tries):
    entry, bench = sweeps.create(SWEEP), Bench({5: PointError(kind, "It died.", "log")})
    ended = Conductor(sweeps, entry, bench).run()
    assert (ended.state, ended.done, ended.problem) == (DONE, 16, None)
    assert bench.measured.count(5) == tries
    failed = sweeps.manifests(entry)[5]
    assert (failed.status, failed.failure.kind, failed.failure.sentence, failed.failure.log) == (
        "failed",
        kind,
        "It died.",
        "log",
    )
    assert (failed.device.name, failed.point.call, failed.point.values) == ("NVIDIA H200", None, (8,))
    assert [done.order for order in bench.orders if order.task.order == 7 for done in order.done] == [4, 6]


def test_the_first_point_that_dies_has_an_unknown_device(sweeps):
    entry = sweeps.create(SWEEP)
    Conductor(sweeps, entry, Bench({0: crashed()})).run()
    assert sweeps.manifests(entry)[0].device == Device("unknown", "unknown")


def test_dead_processes_in_a_row_stop_the_sweep(sweeps):
    entry, bench = sweeps.create(SWEEP), Bench(dict.fromkeys((4, 5, 6), crashed()))
    ended = Conductor(sweeps, entry, bench).run()
    assert (ended.state, ended.done, ended.log) == (FAILED, 4 + CRASHES_MAX, "its last words")
    assert ended.problem.startswith("torch.compile: 3 points one after the other took their process along")
    assert bench.measured[-1] == 6


def test_dead_processes_of_two_series_are_not_in_a_row(sweeps):
    assert Conductor(sweeps, sweeps.create(SWEEP), Bench(dict.fromkeys((2, 3, 4, 6, 7), crashed()))).run().state == DONE


def test_a_series_that_compiles_otherwise_than_before_stops_alone(sweeps):
    entry, bench = sweeps.create(SWEEP), Bench({5: PointError("ledger", "It compiled something else.", "log")})
    ended = Conductor(sweeps, entry, bench).run()
    assert (ended.state, ended.done, ended.problem) == (FAILED, 13, "It compiled something else.")
    assert bench.measured == [0, 1, 2, 3, 4, 5, *range(8, 16)]


def test_a_full_disk_stops_the_sweep_and_it_can_be_resumed(sweeps, monkeypatch):
    entry, add, full = sweeps.create(SWEEP), sweeps.add, [True]

    def refusing(sweep_id, order, data):
        if order == 3 and full:
            raise OSError(28, "No space left on device")
        add(sweep_id, order, data)

    monkeypatch.setattr(sweeps, "add", refusing)
    ended = Conductor(sweeps, entry, Bench()).run()
    assert (ended.state, ended.done) == (FAILED, 3)
    assert (
        ended.problem
        == "The sweep stopped, for the disk refused a point (No space left on device); make room and resume it."
    )
    full.clear()
    assert Conductor(sweeps, entry, Bench()).run().state == DONE


def test_a_sweep_that_was_deleted_meanwhile_ends_in_a_sentence(sweeps):
    entry = sweeps.create(SWEEP)
    (entry.folder / sweepfile.HEAD).unlink()
    entry.folder.rmdir()
    ended = Conductor(sweeps, entry, Bench()).run()
    assert (ended.state, ended.problem) == (FAILED, "This sweep is not here any more; reload the page.")


def test_two_conductors_do_not_measure_one_sweep(sweeps):
    entry, bench = sweeps.create(SWEEP), Bench()
    with conducting(entry):
        ended = Conductor(sweeps, entry, bench).run()
    assert (ended.state, bench.orders) == (FAILED, []) and "being measured just now" in ended.problem
    assert Conductor(sweeps, entry, bench).run().state == DONE


def test_what_was_not_begun_here_is_not_resumed(sweeps, tmp_path):
    data = sweeps.export(sweeps.create(SWEEP))
    elsewhere = Sweeps(tmp_path / "elsewhere", tmp_path / "none")
    ended = Conductor(elsewhere, elsewhere.upload(data), Bench()).run()
    assert (ended.state, ended.problem) == (FAILED, "Only a sweep that was begun here can be resumed; run it anew.")


def test_a_sweep_is_not_resumed_on_another_device(sweeps):
    entry = sweeps.create(SWEEP)
    Conductor(sweeps, entry, Bench({2: PointError("engine", "closed")})).run()

    def elsewhere(order, report):
        found = runfile.read_manifest(point_file(order.sweep_id, order.sweep, order.task))
        return runfile.pack(replace(found, device=Device("gpu", "Another GPU")), None, {})

    ended = Conductor(sweeps, entry, elsewhere).run()
    assert (ended.state, ended.done) == (FAILED, 2)
    assert ended.problem == "This sweep was begun on NVIDIA H200, and this is Another GPU; start a new sweep here."


def test_progress_tells_what_is_measured_and_how_long_it_will_take(sweeps):
    entry, go, seen = sweeps.create(make_sweep({**BATCHES, "backends": "compile,eager"})), threading.Event(), []

    def slow(order, report):
        report("calling it", 0, 1)
        seen.append(conductor.progress)
        assert go.wait(10)
        return point_file(order.sweep_id, order.sweep, order.task)

    conductor = Conductor(sweeps, entry, slow)
    conductor.start()
    _until(lambda: seen)
    assert (seen[0].state, seen[0].backend, seen[0].point, seen[0].text) == (
        RUNNING,
        "torch.compile",
        "batch 4",
        "calling it",
    )
    assert (seen[0].done, seen[0].total, seen[0].seconds_left) == (0, 8, None)
    go.set()
    conductor.join(10)
    assert [one.seconds_left is None for one in seen] == [True] * 5 + [False] * 3
    assert conductor.progress.state == DONE


def test_cancelling_stops_at_the_next_report_and_leaves_what_is_there(sweeps):
    entry, reached = sweeps.create(SWEEP), threading.Event()

    def endless(order, report):
        if order.task.order < 2:
            return point_file(order.sweep_id, order.sweep, order.task)
        while True:
            report("measuring", 0, 1)
            reached.set()
            time.sleep(0.01)

    conductor = Conductor(sweeps, entry, endless)
    conductor.start()
    assert reached.wait(10)
    start = time.monotonic()
    conductor.cancel()
    assert conductor.progress.state == CANCELLED or conductor.progress.text == "being cancelled"
    conductor.join(10)
    assert time.monotonic() - start < 2
    assert (conductor.progress.state, conductor.progress.done) == (CANCELLED, 2)
    assert conductor.progress.text != "being cancelled"
    assert Conductor(sweeps, entry, Bench()).run().state == DONE


def test_an_unexpected_error_is_a_sentence(sweeps):
    ended = Conductor(sweeps, sweeps.create(SWEEP), Bench({1: ZeroDivisionError()})).run()
    assert (ended.state, ended.done) == (FAILED, 1) and "ZeroDivisionError" in ended.problem


def test_a_win_map_goes_cell_by_cell_in_rounds(sweeps):
    entry, bench = sweeps.create(make_sweep(MAP)), Bench()
    assert Conductor(sweeps, entry, bench).run().state == DONE
    first = [(order.task.index, order.task.round, order.task.backend) for order in bench.orders[:7]]
    names = ("eager", "compile", "liger")
    assert first == [*((0, 0, name) for name in names), *((0, 1, name) for name in names), (0, 2, "eager")]


class Jobs:
    """An engine whose jobs are as they are told to be, one after the other."""

    def __init__(self, *states):
        self.states, self.asked, self.cancelled, self.looked = list(states), [], [], lambda: None

    def submit(self, target, payload, **options):
        self.asked.append((target, sweep_order.decode(payload).task.order, options))
        return "job"

    def job(self, job_id):
        self.looked()
        return self.states.pop(0) if len(self.states) > 1 else self.states[0]

    def cancel(self, job_id):
        self.cancelled.append(job_id)
        self.states = [job("running"), job("cancelled")]
        return True


def job(state, **changes):
    known = {"id": "job", "key": "k", "title": "t", "ahead": 0, "text": "", "done": 0, "total": 0, "submitted_s": 0.0,
             "started_s": None, "ended_s": None, "result": None, "failure": None}  # fmt: skip
    return Job(state=state, **(known | changes))


def test_points_are_jobs_of_the_sweeps_worker(sweeps):
    entry = sweeps.create(make_sweep({**BATCHES, "values": "4", "backends": "eager"}))
    data = point_file(entry.head.id, entry.head.sweep, TASKS[0])
    waiting, said = job("queued", ahead=2), []
    jobs = Jobs(waiting, waiting, job("running", text="profiling"), job("done", result=data))
    conductor = Conductor(sweeps, entry, execute_on(jobs))
    jobs.looked = lambda: said.append((conductor.progress.state, conductor.progress.text))
    assert conductor.run().state == DONE
    assert list(dict.fromkeys(said)) == [(RUNNING, ""), (WAITING, "2 ahead"), (RUNNING, "profiling")]
    assert jobs.asked[0][:2] == ("core.bench.series_host:point", 0)
    assert jobs.asked[0][2]["key"] == f"sweep:{entry.head.id}:0" and jobs.asked[0][2]["kind"] == "sweep"


def test_cancelling_ends_the_job(sweeps):
    jobs = Jobs(job("running"))
    conductor = Conductor(sweeps, sweeps.create(SWEEP), execute_on(jobs))
    conductor.start()
    _until(lambda: jobs.asked)
    conductor.cancel()
    conductor.join(10)
    assert (conductor.progress.state, jobs.cancelled) == (CANCELLED, ["job"])


@pytest.mark.parametrize(
    ("ended", "state", "problem"),
    [
        (None, FAILED, "The engine has lost the point that it was measuring; resume the sweep."),
        (job("cancelled"), CANCELLED, None),
        (job("failed", failure=Failure(kind="engine", sentence="No worker.", log="")), FAILED, "No worker."),
    ],
)
def test_a_job_that_is_no_points_fault_stops_the_sweep(sweeps, ended, state, problem):
    found = Conductor(sweeps, sweeps.create(SWEEP), execute_on(Jobs(ended))).run()
    assert (found.state, found.done, found.problem) == (state, 0, problem)


def _until(condition):
    end = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)
