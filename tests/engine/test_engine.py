"""Jobs on the engine's own cluster: results, progress, order, failures, kills and the way back."""

import json
import os
import signal
import sys

import pytest
from engine_driver import Driver, gone, until

from core.engine import Engine, EngineError


def test_result_is_what_the_target_returned(driver):
    job = driver.run("echo", b"\x00bytes\xff")
    assert (job.state, job.result, job.failure, job.ahead) == ("done", b"\x00bytes\xff", None, 0)
    assert job.submitted_s <= job.started_s <= job.ended_s


def test_large_result(driver):
    payload = bytes(8_000_000)
    assert driver.run("echo", payload).result == payload


def test_every_job_runs_in_the_same_thread(driver):
    assert driver.run("where").result == driver.run("where").result
    assert json.loads(driver.run("where").result)["pid"] == driver.engine.worker_pid() != os.getpid()


def test_progress_ends_with_the_last_report(driver, tmp_path):
    gate = tmp_path / "gate"
    job_id = driver.submit("steps", str(gate).encode())
    job = driver.running(job_id, "the last step")
    assert (job.done, job.total) == (200, 200)
    gate.touch()
    assert driver.ended(job_id).result == b"stepped"


def test_jobs_run_in_order_and_know_how_many_are_ahead(driver, tmp_path):
    gate = tmp_path / "gate"
    first = driver.submit("wait_for_file", str(gate).encode())
    driver.running(first)
    others = [driver.submit("echo", str(i).encode()) for i in range(3)]
    assert [driver.engine.job(i).ahead for i in (first, *others)] == [0, 1, 2, 3]
    assert [driver.engine.job(i).state for i in others] == ["queued"] * 3
    assert driver.engine.cancel(others[1])
    assert driver.engine.job(others[1]).state == "cancelled"
    assert [driver.engine.job(i).ahead for i in others] == [1, 0, 2]
    gate.touch()
    ends = [driver.ended(i) for i in (first, others[0], others[2])]
    assert [job.state for job in ends] == ["done"] * 3
    assert [job.started_s for job in ends] == sorted(job.started_s for job in ends)
    assert driver.engine.job(others[1]).started_s is None


def test_asking_twice_runs_once(driver, tmp_path):
    runs = tmp_path / "runs"
    first = driver.submit("count_run", str(runs).encode(), key="shared")
    assert driver.submit("count_run", str(runs).encode(), key="shared") == first
    driver.ended(first)
    assert runs.read_text() == "ran\n"
    again = driver.submit("count_run", str(runs).encode(), key="shared")
    assert again != first
    driver.ended(again)


def test_expected_failure(driver):
    job = driver.run("expected")
    assert (job.state, job.result, job.failure.kind) == ("failed", None, "too_big")
    assert job.failure.sentence == "That does not fit."
    assert "details for the log" in job.failure.log and "Traceback" in job.failure.log


@pytest.mark.parametrize(
    ("name", "type_name"),
    [
        ("unexpected", "ValueError"),
        ("foreign", "ForeignError"),
        ("foreign_base", "ForeignBaseError"),
        ("unpicklable", "UnpicklableError"),
        ("leave", "SystemExit"),
        ("no_bytes", "TypeError"),
        ("no_such_function", "AttributeError"),
    ],
)
def test_unexpected_failure_crosses_as_text(driver, name, type_name):
    pid = driver.engine.worker_pid()
    job = driver.run(name)
    assert (job.state, job.failure.kind) == ("failed", "unexpected")
    assert type_name in job.failure.sentence and type_name in job.failure.log
    assert "foreign_lib" not in sys.modules and "tasks" not in sys.modules
    assert driver.engine.worker_pid() == pid


def test_tasks_may_use_multiprocessing(driver):
    assert driver.run("multiprocess").result == b"3"


@pytest.mark.parametrize(
    ("name", "cause"),
    [("kill_self", "signal 9"), ("segfault", "Segmentation fault"), ("exit_hard", "exit code 7")],
)
def test_worker_death_is_a_crash_and_the_next_job_works(driver, name, cause):
    told = []
    for _ in range(3):  # the nanny's word on how its worker ended is now and then lost on the way
        crashed, after = driver.submit(name), driver.submit("echo", b"after")
        job = driver.ended(crashed)
        assert (job.state, job.failure.kind) == ("crashed", "crashed")
        assert "press Run again" in job.failure.sentence
        assert driver.ended(after).result == b"after"
        if name == "segfault":
            assert "string_at" in job.failure.log
        told.append(job.failure.sentence)
        if cause in job.failure.sentence:
            return
    pytest.fail(f"the cause was never told: {told}")


def test_jobs_handed_to_a_dead_worker_are_sent_again(driver):
    for _ in range(4):
        os.kill(until(driver.engine.worker_pid), signal.SIGKILL)
        assert driver.run("echo", b"still here").result == b"still here"


@pytest.mark.parametrize("name", ["sleep", "hold_gil"])
def test_cancel_ends_a_running_job(driver, name):
    job_id = driver.submit(name, b"120")
    driver.running(job_id, {"sleep": "sleeping", "hold_gil": "holding"}[name])
    assert driver.engine.cancel(job_id)
    job = driver.ended(job_id)
    assert (job.state, job.failure) == ("cancelled", None)
    assert not driver.engine.cancel(job_id)
    assert driver.run("echo", b"next").result == b"next"


def test_cancel_takes_the_tasks_own_children_along(driver):
    job_id = driver.submit("with_child")
    child_pid = int(until(lambda: driver.engine.job(job_id).text.isdigit() and driver.engine.job(job_id).text))
    driver.engine.cancel(job_id)
    until(lambda: gone(child_pid))


def test_time_out(driver):
    job = driver.run("hold_gil", timeout_s=0.5)
    assert (job.state, job.failure.kind) == ("timed_out", "timed_out")
    assert "took longer than 0.5 s and was stopped" in job.failure.sentence
    assert driver.run("echo", b"next").result == b"next"


def test_killed_cluster_is_replaced(driver):
    job_id = driver.submit("hold_gil")
    driver.running(job_id, "holding")
    after = driver.submit("echo", b"after")
    worker, cluster = driver.engine.worker_pid(), driver.engine.cluster_pid()
    os.kill(cluster, signal.SIGKILL)
    assert driver.ended(job_id).state == "crashed"
    assert driver.ended(after).result == b"after"
    until(lambda: gone(worker) and gone(cluster))


def test_cluster_killed_while_idle(driver):
    os.kill(until(driver.engine.cluster_pid), signal.SIGKILL)
    assert driver.run("echo", b"back").result == b"back"


def test_unknown_job(driver):
    assert driver.engine.job("nobody") is None
    assert not driver.engine.cancel("nobody")


def test_jobs_lists_all_with_the_newest_last(driver):
    job_id = driver.submit("echo")
    assert driver.engine.jobs()[-1].id == job_id
    driver.ended(job_id)


def test_on_done_is_called_before_the_job_is_seen_done(worker_path, caplog):
    seen = []

    def on_done(job):
        seen.append((job.title, job.state, engine.job(job.id).state))
        if job.result == b"unwelcome":
            raise OSError("disk full")

    engine = Engine(extra_path=worker_path, on_done=on_done)
    driver = Driver(engine)
    assert driver.run("echo", b"fine").state == "done"
    refused = driver.run("echo", b"unwelcome")
    assert (refused.state, refused.result, refused.failure.kind) == ("failed", None, "on_done")
    assert "disk full" in refused.failure.sentence and "on_done" in caplog.text
    assert driver.run("expected").failure.kind == "too_big"
    assert seen == [("echo", "done", "running"), ("echo", "done", "running"), ("expected", "failed", "running")]
    engine.close()


def test_close_ends_everything_and_may_be_repeated(worker_path):
    engine = Engine(extra_path=worker_path)
    driver = Driver(engine)
    running = driver.submit("hold_gil")
    driver.running(running, "holding")
    waiting = driver.submit("echo")
    pids = [engine.worker_pid(), engine.cluster_pid()]
    engine.close()
    engine.close()
    assert [engine.job(i).state for i in (running, waiting)] == ["cancelled", "cancelled"]
    until(lambda: all(map(gone, pids)))
    assert engine.worker_pid() is None
    with pytest.raises(EngineError, match="closed"):
        driver.submit("echo")


def test_close_during_the_start():
    engine = Engine()
    engine.close()
    assert engine.cluster_pid() is None


def test_failed_start_is_a_failed_job(tmp_path):
    (tmp_path / "file").touch()
    engine = Engine(log_folder=tmp_path / "file")
    job = Driver(engine).run("echo")
    assert (job.state, job.failure.kind) == ("failed", "engine")
    assert "could not be started" in job.failure.sentence
    engine.close()


def test_cluster_that_cannot_start_says_why(tmp_path):
    (tmp_path / "distributed.py").write_text("raise ImportError('broken install')")
    engine = Engine(extra_path=(tmp_path,), log_folder=tmp_path / "logs")
    job = Driver(engine).run("echo")
    assert (job.state, job.failure.kind) == ("failed", "engine")
    assert "broken install" in job.failure.log
    engine.close()


def test_a_worker_that_says_it_is_spent_is_replaced(driver):
    job = driver.run("last_result")
    assert job.state == "done"
    after = json.loads(driver.run("where").result)
    assert after["pid"] != int(job.result)


def test_a_stopped_cluster_holds_up_nobody(driver, tmp_path):
    stuck = driver.submit("wait_for_file", str(tmp_path / "never").encode())
    driver.running(stuck)
    cluster = driver.engine.cluster_pid()
    os.kill(cluster, signal.SIGSTOP)
    driver.engine.cancel(stuck)
    after = driver.submit("echo", b"after")
    assert driver.ended(stuck).state == "cancelled"
    assert driver.ended(after).result == b"after"
    assert driver.engine.cluster_pid() != cluster
    until(lambda: gone(cluster))
