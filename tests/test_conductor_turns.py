"""Several sweeps at once: a handful are measured side by side, the next waits its turn, and no process ends for nothing."""

import threading
import time

import pytest

from core.bench import series_host
from core.conductor import CANCELLED, DONE, RUNNING, WAITING, Conductor
from core.conductor_jobs import SIDE_BY_SIDE_MAX, Turns
from core.store.sweepentry import conducting
from core.store.sweeps import Sweeps
from core.sweep import make_sweep
from tests.sweeps import BATCHES, point_file

SWEEP = make_sweep({**BATCHES, "values": "4,8", "backends": "eager"})


@pytest.fixture
def sweeps(home, tmp_path):
    return Sweeps(home, tmp_path / "none")


def until(condition):
    end = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


@pytest.fixture
def line(sweeps):
    """Five sweeps of which two may be measured at a time, and the gate that lets their points finish."""
    go, turns, begun = threading.Event(), Turns(2), []

    def gated(order, report):
        begun.append(order.sweep_id)
        while not go.is_set():
            report("measuring", 0, 1)
            time.sleep(0.01)
        return point_file(order.sweep_id, order.sweep, order.task)

    conductors = [Conductor(sweeps, sweeps.create(SWEEP), gated, turns) for _ in range(5)]
    for number, conductor in enumerate(conductors):
        conductor.start()
        until(
            lambda number=number, own=conductor: (
                own.progress.text == ("measuring" if number < 2 else _ahead(number - 1))
            )
        )
    yield conductors, go, begun
    go.set()
    for conductor in conductors:
        conductor.cancel()
        conductor.join(10)


def _ahead(number):
    return f"its turn comes when {number} sweep{' before it has' if number == 1 else 's before it have'} ended"


def test_the_next_wait_in_the_order_in_which_they_came(line):
    conductors, go, begun = line
    assert [one.progress.state for one in conductors] == [RUNNING, RUNNING, WAITING, WAITING, WAITING]
    assert conductors[4].progress.seconds_left is None
    assert begun == [one.entry.head.id for one in conductors[:2]]
    go.set()
    for conductor in conductors:
        conductor.join(10)
    assert [one.progress.state for one in conductors] == [DONE] * 5
    assert len(begun) == 10


def test_one_that_ends_lets_the_next_in(line):
    conductors, _, begun = line
    conductors[0].cancel()
    until(lambda: conductors[2].progress.text == "measuring")
    until(lambda: [one.progress.text for one in conductors[3:]] == [_ahead(1), _ahead(2)])
    assert begun[2] == conductors[2].entry.head.id


def test_one_that_waits_is_cancelled_at_once_and_given_free(line, sweeps):
    conductors = line[0]
    conductors[3].cancel()
    conductors[3].join(2)
    assert conductors[3].progress.state == CANCELLED
    until(lambda: conductors[4].progress.text == _ahead(2))
    with conducting(conductors[3].entry):
        pass
    sweeps.delete(conductors[3].entry.head.id)


def restarts(sweep_count, rounds=10):
    """How many processes are started where so many sweeps take turns."""
    alive, started = {}, 0
    for _ in range(rounds):
        for sweep in range(sweep_count):
            key = (f"sweep {sweep}", "eager")
            started += not alive.pop(key, False)
            for one in series_host.superfluous(key[0], alive):
                del alive[one]
            alive[key] = True
    return started


def test_no_process_is_ended_while_sweeps_take_turns():
    assert SIDE_BY_SIDE_MAX <= series_host.HOSTS_MAX
    assert restarts(SIDE_BY_SIDE_MAX) == SIDE_BY_SIDE_MAX
    assert restarts(series_host.HOSTS_MAX) == series_host.HOSTS_MAX
    # One too many costs that one its process at each turn, or its neighbour; not everybody.
    assert restarts(series_host.HOSTS_MAX + 1) <= series_host.HOSTS_MAX + 1 + 2 * 10


def test_a_sweeps_older_series_and_dead_processes_end():
    others = {("a", "eager"): True, ("b", "eager"): False, ("c", "eager"): True}
    assert series_host.superfluous("a", others) == (("a", "eager"), ("b", "eager"))
