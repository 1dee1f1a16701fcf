"""The engine's own cluster, a process of its own: a scheduler and one nanny-watched worker of each kind, on loopback.

Started as `python -m core.engine.cluster SCRATCH_FOLDER`. The first line on stdout is JSON: the scheduler's address and
the PEM texts a client needs, or {"error": log}. The process ends, and takes the workers with it, when stdin closes: so
it cannot outlive the process that started it, however that one ended.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import shutil
import sys
import threading
import traceback
from multiprocessing import resource_tracker
from pathlib import Path
from typing import Any, NoReturn

import dask
from distributed import Nanny, Scheduler, Security
from distributed.core import Status

from core.engine.model import KINDS
from core.engine.task import TOPIC, kill_tree

HOST = "127.0.0.1"
CONFIG: dict[str, Any] = {
    # A job whose worker died is not run again: it would most likely kill the next worker too.
    "distributed.scheduler.allowed-failures": 0,
    # A task may hold the GIL for minutes (a compile): a silent worker is a busy one.
    "distributed.scheduler.worker-ttl": None,
    "distributed.admin.tick.limit": "1h",
    "distributed.comm.timeouts.connect": "60s",
    # Daemonic processes may not have children, and Inductor compiles in children.
    "distributed.worker.daemon": False,
    # Dask's default sets OMP_NUM_THREADS=1, which would make every CPU measurement a single-threaded one.
    "distributed.nanny.pre-spawn-environ": {},
    # What would tick, sample or ask the driver while a layer is being measured.
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "500ms",
    "distributed.admin.system-monitor.gil.enabled": False,
    "distributed.diagnostics.nvml": False,
    "distributed.scheduler.active-memory-manager.start": False,
    # Dask's HTTP servers know no TLS: they listen on loopback, and serve nothing.
    "distributed.scheduler.http.routes": [],
    "distributed.worker.http.routes": [],
}


class ReportingNanny(Nanny):
    """A nanny that also tells how its worker ended; without it a client only learns that the worker is gone."""

    def _on_worker_exit_sync(self, exitcode: int) -> None:
        if self.status == Status.running:
            self.log_event(TOPIC, {"event": "exit", "worker": self.worker_address, "code": exitcode})
        super()._on_worker_exit_sync(exitcode)


async def serve(nannies: list[Nanny]) -> None:
    """Run the cluster until one of its nannies gives up; `nannies` is filled as they are made."""
    security = Security.temporary()
    async with Scheduler(
        host=HOST, port=0, protocol="tls", security=security, dashboard=False, dashboard_address=f"{HOST}:0"
    ) as scheduler:
        tell_parent(
            {
                "address": scheduler.address,
                "ca": security.tls_ca_file,
                "cert": security.tls_client_cert,
                "key": security.tls_client_key,
            }
        )
        # Workers inherit stdout, and what they print must not land in a pipe that nobody reads any more.
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        # Started here, not by the first semaphore, which nobody would remove if this process ended in between
        resource_tracker.ensure_running()
        nannies += [
            ReportingNanny(
                scheduler.address,
                name=kind.name,
                resources={kind.name: 1},
                nthreads=1,
                host=HOST,
                security=security,
                memory_limit=0,
                preload=["core.engine.task"],
                silence_logs=logging.WARNING,
            )
            for kind in KINDS
        ]
        for nanny in nannies:  # one after the other: the first page waits for the first worker alone
            await nanny
        await asyncio.wait([asyncio.ensure_future(n.finished()) for n in nannies], return_when=asyncio.FIRST_COMPLETED)


def tell_parent(message: dict[str, Any]) -> None:
    """Write one JSON line to stdout."""
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def leave(nannies: list[Nanny], scratch: Path) -> NoReturn:
    """End this process at once, with its workers and its scratch folder.

    An orderly close would wait for running tasks. multiprocessing's resource tracker is left to end by itself, which it
    does when it sees this process gone: it removes the semaphores from /dev/shm.
    """
    for nanny in nannies:
        if nanny.pid is not None:
            kill_tree(nanny.pid)
    shutil.rmtree(scratch, ignore_errors=True)
    os._exit(1)


def main(scratch: Path) -> None:
    """Serve until stdin closes."""
    nannies: list[Nanny] = []

    def leave_with_parent() -> None:
        sys.stdin.buffer.read()
        leave(nannies, scratch)

    threading.Thread(target=leave_with_parent, name="leave-with-parent", daemon=True).start()
    logging.getLogger("distributed").setLevel(logging.WARNING)
    dask.config.set(CONFIG | {"temporary-directory": str(scratch)})
    try:
        asyncio.run(serve(nannies))
    except Exception:  # noqa: BLE001 whatever keeps the cluster from starting, the parent has to hear of it
        tell_parent({"error": traceback.format_exc()})
    leave(nannies, scratch)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
