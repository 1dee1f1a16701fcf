"""The one place that talks to dask: connects, again if need be, to the engine's own cluster or to one elsewhere."""

from __future__ import annotations

import ipaddress
import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import CancelledError
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from distributed import Client, Future, Security
from distributed.utils import LoopRunner

from core.engine.jobs import Record
from core.engine.launch import OwnCluster, WorkerLog
from core.engine.model import EngineError, TlsFiles
from core.engine.task import TOPIC, kill_worker, run_task, worker_pid

CONNECT_TIMEOUT_S = 10.0
CLOSE_TIMEOUT_S = 2.0
GONE_TIMEOUT_S = 5.0
GONE_POLL_S = 0.02

# What it has to say, that a scheduler is gone, is told as the failure of the job that was lost with it
logging.getLogger("distributed.client").setLevel(logging.CRITICAL)


def security_for(address: str, tls: TlsFiles | None) -> Security | None:
    """The credentials for a scheduler at `address`; EngineError if it must not be talked to like that.

    Dask runs anybody's pickle, so an address that others can reach needs certificates on both sides.
    """
    parts = urlsplit(address)
    if parts.scheme not in ("tls", "tcp") or parts.hostname is None:
        raise EngineError(f"{address!r} is no scheduler address; write tls://host:port.")
    if parts.scheme == "tcp":
        if tls is not None:
            raise EngineError(
                f"{address} is not encrypted although TLS files are given; write tls:// instead of tcp://."
            )
        if not _is_loopback(parts.hostname):
            raise EngineError(
                f"{address} is refused: a scheduler on another machine is only used over tls:// with certificates, "
                "because whoever reaches it unencrypted can run any code."
            )
        return None
    if tls is None:
        raise EngineError(f"{address} needs TLS files: the authority, a certificate and its key.")
    missing = [str(path) for path in (tls.ca, tls.cert, tls.key) if not path.is_file()]
    if missing:
        raise EngineError(f"These TLS files do not exist: {', '.join(missing)}.")
    return Security(
        require_encryption=True, tls_ca_file=str(tls.ca), tls_client_cert=str(tls.cert), tls_client_key=str(tls.key)
    )


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class Link:
    """A connection that heals: `ensure` returns a working client, after a new start where the old one is gone."""

    def __init__(
        self,
        *,
        address: str | None,
        tls: TlsFiles | None,
        extra_path: tuple[Path, ...],
        log: WorkerLog,
        on_event: Callable[[dict[str, Any]], None],
    ) -> None:
        """Checks the address (EngineError); starts and connects nothing yet."""
        self._address = address
        self._security = security_for(address, tls) if address is not None else None
        self._extra_path = extra_path
        self._log = log
        self._on_event = on_event
        self._lock = threading.RLock()
        # One event loop for all clients to come: one that fails to connect would leave its own loop's thread behind.
        self._loop_runner = LoopRunner()
        self._client: Client | None = None
        self._unclosed: list[Client] = []
        self._cluster: OwnCluster | None = None
        self.closed = False

    @property
    def owns_cluster(self) -> bool:
        """Whether the cluster is the engine's own, and so can be started anew."""
        return self._address is None

    @property
    def cluster_pid(self) -> int | None:
        """The process id of the engine's own cluster, None if it has none at present."""
        cluster = self._cluster
        return cluster.pid if cluster is not None else None

    def alive(self) -> bool:
        """Whether the scheduler answers to the client in use."""
        client, cluster = self._client, self._cluster
        if client is None or (self.owns_cluster and (cluster is None or not cluster.alive())):
            return False
        return bool(client.status == "running")

    def ensure(self) -> Client:
        """A connected client; EngineError if there is no cluster to be had. Takes seconds when it has to start one."""
        with self._lock:
            if self.closed:
                raise EngineError("The engine is closed.")
            if self._client is not None and self.alive():
                return self._client
            self.reset()
            if not self._loop_runner.is_started():
                self._loop_runner.start()
            address, security = self._address, self._security
            if address is None:
                self._cluster = OwnCluster(extra_path=self._extra_path, log=self._log)
                address, security = self._cluster.hello()
            self._client = self._connected(address, security)
            return self._client

    def _connected(self, address: str, security: Security | None) -> Client:
        try:
            client = Client(
                address,
                security=security,
                timeout=CONNECT_TIMEOUT_S,
                set_as_default=False,
                loop=self._loop_runner.loop,
            )
        except (OSError, TimeoutError, ImportError) as error:
            raise EngineError(f"No scheduler answers at {address} to these credentials.", repr(error)) from error
        client.subscribe_topic(TOPIC, lambda event: self._on_event(event[1]))
        return client

    def send(self, record: Record, attempt: int) -> Future:
        """Hand one job to dask."""
        return self.ensure().submit(
            run_task,
            record.id,
            record.target,
            record.payload,
            key=f"{record.id}-{attempt}",
            pure=False,
            resources={record.kind.name: 1},
        )

    def workers(self, kind_name: str) -> list[str]:
        """The addresses of the workers of one kind that the scheduler knows now."""
        client = self._client
        if client is None or not self.alive():
            return []
        known = client.scheduler_info(n_workers=-1).get("workers", {})
        return [address for address, worker in known.items() if kind_name in worker["resources"]]

    def worker_pid(self, kind_name: str) -> int | None:
        """The process id of the first worker of a kind, asked from its nanny; None if there is none."""
        addresses, client = self.workers(kind_name)[:1], self._client
        if not addresses or client is None:
            return None
        # KeyError: the worker has just gone. OSError: the scheduler has.
        with suppress(KeyError, OSError):
            return next(iter(client.run(worker_pid, workers=addresses, nanny=True, on_error="ignore").values()), None)
        return None

    def kill(self, record: Record) -> None:
        """Kill the worker that runs a job and wait until the scheduler has dropped it.

        The next job would be handed to the dying worker otherwise. Where the nanny does not do it, the engine's own
        cluster is ended; a worker elsewhere that has no nanny goes on to the end of its task.
        """
        client = self._client
        if client is None or record.worker is None:
            return
        deadline_s = time.monotonic() + GONE_TIMEOUT_S
        # In a thread of its own: a cluster that is stopped or swamped never answers, and dask waits for ever.
        asking = threading.Thread(target=self._ask_nanny, args=(client, record), name="engine-kill", daemon=True)
        asking.start()
        asking.join(GONE_TIMEOUT_S)
        if self.owns_cluster and (asking.is_alive() or not self.alive()):
            self.reset()
            return
        while record.worker in self.workers(record.kind.name):
            if time.monotonic() > deadline_s:
                if self.owns_cluster:
                    self.reset()
                return
            time.sleep(GONE_POLL_S)

    def _ask_nanny(self, client: Client, record: Record) -> None:
        assert record.worker is not None
        # KeyError: the scheduler has dropped this worker already. OSError: it or the nanny is gone.
        with suppress(KeyError, OSError, CancelledError):
            client.run(kill_worker, record.worker_pid, workers=[record.worker], nanny=True, on_error="ignore")

    def reset(self) -> None:
        """Drop the client and end the engine's own cluster; the next `ensure` starts afresh."""
        with self._lock:
            if self._cluster is not None:
                self._cluster.end()
            if self._client is not None:
                try:
                    self._client.close(timeout=CLOSE_TIMEOUT_S)
                except (OSError, ValueError):  # tornado raises the latter for a stream that broke in its TLS handshake
                    # Collected as garbage it would close itself, in whatever thread, and can deadlock in dask's lock
                    self._unclosed.append(self._client)
            self._cluster = self._client = None

    def close(self) -> None:
        """End for good, also in the middle of a start."""
        self.closed = True
        cluster = self._cluster
        if cluster is not None:
            # Outside the lock: whoever holds it may be waiting for this very process
            cluster.end()
        with self._lock:
            self.reset()
            self._loop_runner.stop()
