"""Sweeps through the engine: what a visitor runs meanwhile, a killed process and a cancel change nothing in the ledger."""

import os
import signal
import time

import msgspec
import psutil
import pytest
from engine_driver import Driver, until

from core.conductor import CANCELLED, DONE, Conductor
from core.conductor_jobs import execute_on
from core.engine import Engine
from core.store import runfile
from core.store.manifest import protocol_for
from core.store.sweeps import Sweeps
from core.sweep import make_sweep
from core.sweep_order import fingerprint
from core.workload import make

SMALL = {"layer": "linear", "in_features": "16", "out_features": "32", "dtype": "fp32", "steps": "2"}
BATCHES = make_sweep({**SMALL, "axis": "batch", "values": "4,8,16,32", "backends": "compile"})
LEDGER = ["0/0 ok", "0/1 ok", "", ""]


@pytest.fixture(scope="module")
def driver(worker_path, log_folder):
    """An engine of its own: these tests kill its workers."""
    engine = Engine(extra_path=worker_path, log_folder=log_folder)
    yield Driver(engine)
    engine.close()


@pytest.fixture
def sweeps(home, tmp_path):
    return Sweeps(home, tmp_path / "none")


def conducted(driver, sweeps):
    conductor = Conductor(sweeps, sweeps.create(BATCHES), execute_on(driver.engine))
    conductor.start()
    return conductor


def found(sweeps):
    return sweeps.manifests(sweeps.entries()[0])


def series_process(driver):
    """The process that measures the series: the one child that the sweep's worker has."""
    children = psutil.Process(driver.engine.worker_pid("sweep")).children(recursive=True)
    return next((one for one in children if "core.bench.series" in one.cmdline()), None)


def test_a_visitors_runs_between_the_points_leave_the_ledger_alone(driver, sweeps):
    conductor, ran = conducted(driver, sweeps), 0
    while conductor.live:
        workload = make({**SMALL, "batch": 100 + ran, "backend": "compile"})
        order = msgspec.json.encode({"workload": workload, "protocol": protocol_for(workload, light=True)})
        job = driver.ended(
            driver.engine.submit("core.bench.tasks:run_workload", order, key=f"visitor {ran}", title="visitor")
        )
        assert runfile.read_manifest(job.result).failure is None
        ran += 1
    assert ran > 0 and conductor.progress.state == DONE, conductor.progress
    assert [fingerprint(one.point.call) for one in found(sweeps)] == LEDGER
    assert [one.point.call.served_by for one in found(sweeps)] == [("0/0",), ("0/1",), ("0/1",), ("0/1",)]
    assert driver.run("has_torch", kind="sweep").result == b"no"


def test_a_killed_process_is_started_anew_and_repeats_what_it_compiled(driver, sweeps):
    conductor = conducted(driver, sweeps)
    until(lambda: conductor.progress.done == 2, deadline_s=60)
    os.kill(series_process(driver).pid, signal.SIGKILL)
    conductor.join(90)
    assert conductor.progress.state == DONE, conductor.progress
    points = [one.point for one in found(sweeps)]
    assert [fingerprint(one.call) for one in points] == LEDGER
    assert any(one.replayed for one in points) and all(one.replayed in (0, one.order) for one in points)


def test_a_cancelled_sweep_stops_at_once_with_its_process_and_can_be_resumed(driver, sweeps):
    conductor = conducted(driver, sweeps)
    until(lambda: conductor.progress.done == 1, deadline_s=60)
    process, start = series_process(driver), time.monotonic()
    conductor.cancel()
    conductor.join(10)
    assert time.monotonic() - start < 2 and conductor.progress.state == CANCELLED
    until(lambda: not process.is_running() or process.status() == psutil.STATUS_ZOMBIE)
    again = Conductor(sweeps, sweeps.entries()[0], execute_on(driver.engine)).run()
    assert again.state == DONE, again
    assert [fingerprint(one.point.call) for one in found(sweeps)] == LEDGER
