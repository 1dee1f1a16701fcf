"""Drives an engine in tests: submits targets from tasks.py and waits, with deadlines that are no measurements."""

import time
from pathlib import Path

import psutil
import pytest

HERE = Path(__file__).parent
DEADLINE_S = 30.0


def until(condition, *, deadline_s=DEADLINE_S):
    """The first true value of `condition`, which fails the test if there is none in time."""
    end_s = time.monotonic() + deadline_s
    while time.monotonic() < end_s:
        value = condition()
        if value:
            return value
        time.sleep(0.01)
    pytest.fail("waited in vain")


def gone(pid):
    return not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


class Driver:
    """An engine and the few things that tests do with it over and over."""

    def __init__(self, engine):
        self.engine = engine
        self._count = 0

    def submit(self, name, payload=b"", *, key=None, **options):
        self._count += 1
        return self.engine.submit(f"tasks:{name}", payload, key=key or f"{name}-{self._count}", title=name, **options)

    def ended(self, job_id):
        return until(lambda: (job := self.engine.job(job_id)) and job.state not in ("queued", "running") and job)

    def running(self, job_id, text=""):
        def reached():
            job = self.engine.job(job_id)
            assert job.state in ("queued", "running"), job
            return job if job.state == "running" and job.text.startswith(text) else None

        return until(reached)

    def run(self, name, payload=b"", **options):
        return self.ended(self.submit(name, payload, **options))
