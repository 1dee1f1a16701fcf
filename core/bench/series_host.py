"""Runs a series of a sweep in a process of its own, from outside: starts it, hands it orders, brings the run files back.

Imports no torch: the engine's worker for sweeps only passes bytes on.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO

import psutil

from core import sweep_order
from core.store import runfile
from core.sweep import plan
from core.sweep_order import PointOrder

Report = Callable[[str, int, int], None]
#: Series of this many sweeps are kept alive side by side; one that was ended repeats its finished calls. Twice what one web
#: process asks for at once (core.conductor_jobs.SIDE_BY_SIDE_MAX), for a scheduler may serve two.
HOSTS_MAX = 8
#: What a frame from the process is: what it does now, a finished point, or why there is none.
PROGRESS, RESULT, ERROR = b"P", b"R", b"E"
_LENGTH_BYTES = 8
_LOG_BYTES = 16_384
#: The environment variable that names the folder for what a process writes while it lives, and how such folders begin; the
#: host's process id follows.
SCRATCH = "FUSIONSCOPE_SCRATCH"
#: The one that holds the host's process id.
HOST = "FUSIONSCOPE_HOST"
_FOLDER = "fusionscope-series-"
_ROOT = Path(__file__).resolve().parents[2]


class SeriesError(Exception):
    """Why there is no result: "crashed" (the process died) or "ledger" (it compiled otherwise than before)."""

    def __init__(self, kind: str, sentence: str, log: str = "") -> None:
        super().__init__(sentence)
        self.kind, self.sentence, self.log = kind, sentence, log


class SeriesHost:
    """One series' process; started when the first point is asked for, and anew where it has died meanwhile."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._log: IO[bytes] | None = None
        self._scratch = ""
        self._performed: list[int] = []

    def perform(self, order: PointOrder, report: Report) -> bytes:
        """Measures the point; its run file, also where the point failed. Raises SeriesError."""
        before = [done.order for done in order.done]
        if not self.alive or self._performed != before:
            report("starting a process: importing torch", 0, 1)
            self._start()
        self._performed = [*before, order.task.order]
        try:
            data = self._ask(sweep_order.encode(order), report)
        except (OSError, EOFError) as error:
            assert self._process is not None
            self._process.wait()
            log = self._told()
            code = self._ended()
            raise SeriesError("crashed", f"The process that measured this point died ({code}).", log) from error
        last = max(task.order for task in plan(order.sweep) if task.process == order.task.process)
        failure = runfile.read_manifest(data).failure
        if order.task.order == last or (failure is not None and failure.kind == "cuda_error"):
            self.close()  # nothing more to do for it, or its CUDA context is lost
        return data

    @property
    def alive(self) -> bool:
        """Whether there is a process, still running."""
        return self._process is not None and self._process.poll() is None

    def close(self) -> None:
        """Ends the process, if there is one."""
        if self._process is not None:
            self._ended()

    def _start(self) -> None:
        self.close()
        _remove_orphans()
        self._scratch = tempfile.mkdtemp(prefix=f"{_FOLDER}{os.getpid()}-")
        self._log = tempfile.TemporaryFile()  # noqa: SIM115  # closed with the process
        self._process = subprocess.Popen(
            [sys.executable, "-m", "core.bench.series"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            cwd=_ROOT,
            env=os.environ | {SCRATCH: self._scratch, HOST: str(os.getpid())},
        )

    def _ask(self, payload: bytes, report: Report) -> bytes:
        assert self._process is not None and self._process.stdin is not None and self._process.stdout is not None
        write_frame(self._process.stdin, RESULT, payload)
        while True:
            tag, found = read_frame(self._process.stdout)
            if tag == PROGRESS:
                report(found.decode(), 0, 1)
            elif tag == RESULT:
                return found
            else:
                self.close()
                raise SeriesError(**json.loads(found))

    def _told(self) -> str:
        """The last that the process said on stderr."""
        if self._log is None:
            return ""
        self._log.seek(max(0, self._log.seek(0, 2) - _LOG_BYTES))
        return self._log.read().decode(errors="replace")

    def _ended(self) -> str:
        """Ends the process and forgets it; how it ended, in words."""
        assert self._process is not None
        process, self._process, self._performed = self._process, None, []
        assert process.stdin is not None and process.stdout is not None
        if process.poll() is None:
            process.kill()  # an orderly end would take a second, and what it wrote goes with its folder
        process.wait()
        with contextlib.suppress(OSError):  # it died with something left to read
            process.stdin.close()
        process.stdout.close()
        shutil.rmtree(self._scratch, ignore_errors=True)
        if self._log is not None:
            self._log.close()
        return f"signal {-process.returncode}" if process.returncode < 0 else f"exit code {process.returncode}"


def _remove_orphans() -> None:
    """Removes what the processes of hosts left behind that were killed."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_FOLDER}*"):
        pid = folder.name.removeprefix(_FOLDER).partition("-")[0]
        if pid.isdecimal() and not psutil.pid_exists(int(pid)):
            shutil.rmtree(folder, ignore_errors=True)


Key = tuple[str, str]
#: By sweep and process, the one that had its turn last at the end.
_HOSTS: dict[Key, SeriesHost] = {}


def point(payload: bytes, report: Report) -> bytes:
    """Measures the point that an order names, in its series' process; the run file. Raises SeriesError."""
    order = sweep_order.decode(payload)
    key = (order.sweep_id, order.task.process)
    host = _HOSTS.pop(key, None) or SeriesHost()
    for one in superfluous(order.sweep_id, {one: kept.alive for one, kept in _HOSTS.items()}):
        _HOSTS.pop(one).close()
    _HOSTS[key] = host
    return host.perform(order, report)


def superfluous(sweep_id: str, others: Mapping[Key, bool]) -> tuple[Key, ...]:
    """The processes to end before a sweep has its turn. `others` are the other processes and whether they still run, by sweep
    and process, in the order of their last turns."""
    # A sweep goes series after series, and one that ended by itself has nothing left to keep.
    kept = [key for key, alive in others.items() if alive and key[0] != sweep_id]
    # Sweeps take turns: the one that had its turn last is the last to need its process again.
    return tuple(key for key in others if key not in kept[: HOSTS_MAX - 1])


def write_frame(pipe: IO[bytes], tag: bytes, payload: bytes) -> None:
    """One tagged message. Raises OSError where the other side is gone."""
    pipe.write(tag + len(payload).to_bytes(_LENGTH_BYTES, "big") + payload)
    pipe.flush()


def read_frame(pipe: IO[bytes]) -> tuple[bytes, bytes]:
    """The next message: its tag and payload. Raises EOFError where the other side is gone."""
    head = pipe.read(1 + _LENGTH_BYTES)
    if len(head) < 1 + _LENGTH_BYTES:
        raise EOFError
    length = int.from_bytes(head[1:], "big")
    payload = pipe.read(length)
    if len(payload) < length:
        raise EOFError
    return head[:1], payload
