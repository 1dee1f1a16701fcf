"""Starts the engine's own cluster as a subprocess, learns how to reach it, and ends it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from distributed import Security

from core.engine.model import EngineError

ROOT = Path(__file__).resolve().parents[2]
LOG_NAME = "engine.log"
HELLO_TIMEOUT_S = 60.0
END_TIMEOUT_S = 5.0
LOG_TAIL_BYTES = 16384


class WorkerLog:
    """The file that collects what cluster and workers write to stdout and stderr; without a folder nothing is kept."""

    def __init__(self, folder: Path | None) -> None:
        self._path = folder / LOG_NAME if folder is not None else None

    def open(self) -> BinaryIO:
        """The file, open for appending. OSError where it cannot be written."""
        if self._path is None:
            return Path(os.devnull).open("ab")
        self._path.parent.mkdir(parents=True, exist_ok=True)
        return self._path.open("ab")

    def size_bytes(self) -> int:
        """How much has been written so far."""
        return self._path.stat().st_size if self._path is not None and self._path.exists() else 0

    def since(self, start_bytes: int) -> str:
        """What was written after the first `start_bytes`, of that at most the last `LOG_TAIL_BYTES`."""
        size_bytes = self.size_bytes()
        if self._path is None or size_bytes <= start_bytes:
            return ""
        with self._path.open("rb") as log:
            log.seek(max(start_bytes, size_bytes - LOG_TAIL_BYTES))
            return log.read().decode(errors="replace")


class OwnCluster:
    """A cluster process; it lives as long as the pipe to its stdin is open, so never longer than this process."""

    def __init__(self, *, extra_path: tuple[Path, ...], log: WorkerLog) -> None:
        """Start the process without waiting for it. EngineError: the process or its log file cannot be opened."""
        self._log, self._log_start_bytes = log, log.size_bytes()
        search_path = [*map(str, extra_path), str(ROOT), os.environ.get("PYTHONPATH", "")]
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, search_path))}
        self._scratch = Path(tempfile.mkdtemp(prefix="fusionscope-"))
        try:
            with log.open() as log_file:
                self._process = subprocess.Popen(
                    # -P: a folder named core in the current directory must not be taken for ours
                    [sys.executable, "-P", "-m", "core.engine.cluster", str(self._scratch)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=log_file,
                    env=environment,
                    # Ctrl-C in the terminal is for the server, which then closes the pipe
                    start_new_session=True,
                )
        except OSError as error:
            shutil.rmtree(self._scratch, ignore_errors=True)
            raise EngineError(f"The worker processes could not be started: {error}.") from error

    def hello(self) -> tuple[str, Security]:
        """Wait for the scheduler's address and the credentials for it; EngineError if the cluster cannot start."""
        assert self._process.stdout is not None
        watchdog = threading.Timer(HELLO_TIMEOUT_S, self._process.kill)
        watchdog.start()
        with self._process.stdout as pipe:
            line = pipe.readline()
        watchdog.cancel()
        if not line.endswith(b"\n"):
            raise EngineError(
                "The worker processes ended before they were ready; try again.", self._log.since(self._log_start_bytes)
            )
        hello: dict[str, str] = json.loads(line)
        if "error" in hello:
            raise EngineError("The worker processes could not be started; the log says why.", hello["error"])
        security = Security(
            require_encryption=True,
            tls_ca_file=hello["ca"],
            tls_client_cert=hello["cert"],
            tls_client_key=hello["key"],
        )
        return hello["address"], security

    @property
    def pid(self) -> int:
        """The process id of the cluster, which is neither the web process's nor a worker's."""
        return self._process.pid

    def alive(self) -> bool:
        """Whether the process still runs."""
        return self._process.poll() is None

    def end(self) -> None:
        """End the process and its workers, running tasks included; returns when it is gone. May be called twice."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(END_TIMEOUT_S)
        self._process.kill()
        self._process.wait()
        shutil.rmtree(self._scratch, ignore_errors=True)
