"""The worker's side of a job: runs the target, sends its progress, and turns whatever happens into bytes.

Nothing but bytes and plain messages leaves a worker. An exception object would be unpickled in the web process and
import there whatever module defines its class, torch included.
"""

from __future__ import annotations

import ctypes
import faulthandler
import importlib
import json
import os
import signal
import sys
import threading
import time
import traceback
from contextlib import suppress
from typing import Any

import psutil
from distributed import Worker, get_worker
from distributed.utils import sync

TOPIC = "fusionscope-job"
RESULT_MARK = b"R"
LAST_RESULT_MARK = b"L"
FAILURE_MARK = b"F"
PROGRESS_INTERVAL_S = 0.05
PR_SET_PDEATHSIG = 1


class LastResult(bytes):
    """A result after which its worker must be replaced: its CUDA context is lost, say, and no later job can work in it."""


class Reporter:
    """Sends a task's progress, at most one message each `PROGRESS_INTERVAL_S`; the last one always arrives."""

    def __init__(self, worker: Worker, job_id: str) -> None:
        self._worker = worker
        self._job_id = job_id
        self._lock = threading.Lock()
        self._latest: dict[str, Any] | None = None
        self._sent_s = 0.0
        self._flush_planned = False

    def __call__(self, text: str, done: int, total: int) -> None:
        """Say what the task is doing, and that `done` of `total` parts are finished."""
        message = {"event": "progress", "job": self._job_id, "text": str(text), "done": int(done), "total": int(total)}
        with self._lock:
            self._latest = message
            wait_s = self._sent_s + PROGRESS_INTERVAL_S - time.monotonic()
            if wait_s <= 0:
                self._send()
            elif not self._flush_planned:
                self._flush_planned = True
                self._worker.loop.add_callback(self._worker.loop.call_later, wait_s, self._flush)

    def _flush(self) -> None:
        with self._lock:
            self._flush_planned = False
            self._send()

    def _send(self) -> None:
        if self._latest is not None:
            self._worker.log_event(TOPIC, self._latest)
            self._latest = None
            self._sent_s = time.monotonic()


def run_task(job_id: str, target: str, payload: bytes) -> bytes:
    """Call `target` ("package.module:function") as function(payload, report) and return its bytes, marked.

    The first byte says what follows: R the function's result, L the last one that this worker can give, F a failure as
    JSON (kind, sentence, log). Never raises.
    """
    worker = get_worker()
    started = {"event": "started", "job": job_id, "worker": worker.address, "pid": os.getpid()}
    try:
        # Waits for the scheduler's answer, so that a task that kills its process at once is known to have started.
        sync(worker.loop, worker.scheduler.log_event, topic=TOPIC, msg=started)
        module_name, _, function_name = target.partition(":")
        function = getattr(importlib.import_module(module_name), function_name)
        result = function(payload, Reporter(worker, job_id))
        return (LAST_RESULT_MARK if isinstance(result, LastResult) else RESULT_MARK) + result
    except BaseException as error:  # noqa: BLE001 the wall: no exception object may reach the web process
        return FAILURE_MARK + json.dumps(_described(error)).encode()


def _described(error: BaseException) -> dict[str, str]:
    kind, sentence = getattr(error, "kind", None), getattr(error, "sentence", None)
    if not (isinstance(kind, str) and isinstance(sentence, str)):
        kind = "unexpected"
        sentence = (
            f"Sorry, this run stopped on an error nobody expected ({type(error).__name__}); its log has the details."
        )
    return {"kind": kind, "sentence": sentence, "log": "".join(traceback.format_exception(error))}


def kill_tree(pid: int) -> None:
    """Kill a process and all that it started (a compiler, say), without asking; one that is gone already is fine."""
    with suppress(psutil.NoSuchProcess):
        process = psutil.Process(pid)
        family = [process, *process.children(recursive=True)]
        for member in family:
            with suppress(psutil.NoSuchProcess):
                member.kill()


def kill_worker(pid: int, dask_worker: Any = None) -> None:
    """Run by a nanny (dask passes it as `dask_worker`): kill its worker if that still is process `pid`."""
    if dask_worker.pid == pid:
        kill_tree(pid)


def worker_pid(dask_worker: Any = None) -> int | None:
    """Run by a nanny (dask passes it as `dask_worker`): the process id of its worker, None between two workers."""
    pid: int | None = dask_worker.pid
    return pid


def dask_setup(worker: Worker) -> None:
    """Dask's preload hook, run once in each worker of the engine's own cluster before its first job."""
    faulthandler.enable()
    if sys.platform == "linux":
        # Dask's own watch on the nanny is a Python thread: it cannot act while a task holds the GIL.
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
