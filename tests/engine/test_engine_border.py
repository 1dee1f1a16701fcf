"""The engine's outer border: addresses and certificates, schedulers elsewhere, and what is left after a SIGKILL."""

import asyncio
import os
import signal
import socket
import ssl
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import psutil
import pytest
from distributed import Security
from distributed.comm import connect
from engine_driver import HERE, Driver, gone, until

import core.engine.client
import core.engine.engine
from core.engine import Engine, EngineError, TlsFiles
from core.engine.launch import ROOT, OwnCluster, WorkerLog

PARENT = """
import sys, time
from pathlib import Path
from core.engine import Engine
if __name__ == "__main__":
    engine = Engine(extra_path=(Path(sys.argv[1]),))
    job = engine.submit("tasks:hold_gil", b"", key="k", title="t")
    while engine.job(job).text != "holding":
        time.sleep(0.01)
    print(engine.cluster_pid(), engine.worker_pid(), flush=True)
    time.sleep(120)
"""


@pytest.fixture(scope="module")
def cluster(worker_path):
    """A cluster that is elsewhere, as far as an engine with its address is concerned."""
    cluster = OwnCluster(extra_path=worker_path, log=WorkerLog(None))
    yield cluster, *cluster.hello()
    cluster.end()


def tls_files(security, folder):
    files = TlsFiles(ca=folder / "ca.pem", cert=folder / "cert.pem", key=folder / "key.pem")
    files.ca.write_text(security.tls_ca_file)
    files.cert.write_text(security.tls_client_cert)
    files.key.write_text(security.tls_client_key)
    return files


@pytest.mark.parametrize(
    ("address", "word"),
    [
        ("tcp://10.0.0.5:1", "refused"),
        ("tcp://gpu-box:8786", "refused"),
        ("tls://10.0.0.5:1", "needs TLS files"),
        ("gpu-box:8786", "no scheduler address"),
        ("ucx://10.0.0.5:1", "no scheduler address"),
    ],
)
def test_addresses_that_are_refused(address, word):
    with pytest.raises(EngineError, match=word):
        Engine(address=address)


def test_tls_files_must_fit(tmp_path):
    files = TlsFiles(ca=tmp_path / "ca.pem", cert=tmp_path / "cert.pem", key=tmp_path / "key.pem")
    with pytest.raises(EngineError, match=r"do not exist.*ca\.pem"):
        Engine(address="tls://10.0.0.5:1", tls=files)
    with pytest.raises(EngineError, match="not encrypted"):
        Engine(address="tcp://127.0.0.1:1", tls=files)


@pytest.mark.parametrize("who", ["own", "none", "stranger", "no certificate"])
def test_clients_without_the_certificate_are_refused(cluster, who):
    _, address, own = cluster
    nobody = ssl.create_default_context(cadata=own.tls_ca_file)
    nobody.check_hostname = False
    plain, options = {
        "none": (address.replace("tls://", "tcp://"), {}),
        "stranger": (address, Security.temporary().get_connection_args("client")),
        "no certificate": (address, {"ssl_context": nobody, "require_encryption": True}),
        "own": (address, own.get_connection_args("client")),
    }[who]

    async def knock():
        comm = await connect(plain, timeout=2, **options)
        await comm.write({"op": "identity", "n_workers": 0})
        answer = await comm.read()
        await comm.close()
        return answer

    if who == "own":
        assert asyncio.run(knock())["type"] == "Scheduler"
    else:
        with pytest.raises(OSError):
            asyncio.run(knock())


def test_scheduler_elsewhere(cluster, tmp_path):
    engine = Engine(address=cluster[1], tls=tls_files(cluster[2], tmp_path))
    driver = Driver(engine)
    assert driver.run("echo", b"over there").result == b"over there"
    held = driver.submit("hold_gil")
    driver.running(held, "holding")
    assert engine.cancel(held)
    assert driver.ended(held).state == "cancelled"
    assert driver.run("kill_self").state == "crashed"
    assert driver.run("echo", b"again").result == b"again"
    engine.close()
    assert cluster[0].alive()


def test_scheduler_elsewhere_that_goes_away(worker_path, tmp_path, monkeypatch):
    monkeypatch.setattr(core.engine.client, "CONNECT_TIMEOUT_S", 1.0)
    cluster = OwnCluster(extra_path=worker_path, log=WorkerLog(None))
    address, security = cluster.hello()
    engine = Engine(address=address, tls=tls_files(security, tmp_path))
    driver = Driver(engine)
    job_id = driver.submit("sleep", b"120")
    driver.running(job_id, "sleeping")
    cluster.end()
    assert driver.ended(job_id).state == "crashed"
    job = driver.run("echo")
    assert (job.state, job.failure.kind) == ("failed", "engine")
    assert f"No scheduler answers at {address}" in job.failure.sentence
    engine.close()


def test_plain_dask_on_loopback(tmp_path, monkeypatch):
    """A scheduler and a worker from dask's own command line, with dask's own idea of retrying a deadly task."""
    monkeypatch.setattr(core.engine.engine, "WORKER_WAIT_S", 0.5)
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{probe.getsockname()[1]}"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, (HERE, ROOT))), "TMPDIR": str(tmp_path)}
    options = {"env": environment, "stderr": subprocess.DEVNULL, "cwd": tmp_path}
    dask = [sys.executable, "-m", "dask"]
    scheduler = subprocess.Popen([*dask, "scheduler", "--host", address, "--no-dashboard"], **options)
    worker = None
    engine = Engine(address=address)
    driver = Driver(engine)
    try:
        nobody = driver.run("echo")
        assert (nobody.state, nobody.failure.kind) == ("failed", "engine")
        assert "no worker with the resource gpu" in nobody.failure.sentence
        monkeypatch.setattr(core.engine.engine, "WORKER_WAIT_S", 30.0)
        worker = subprocess.Popen(
            [*dask, "worker", address, "--nthreads", "1", "--resources", "gpu=1", "--no-dashboard"], **options
        )
        runs = tmp_path / "runs"
        assert driver.run("count_and_die", str(runs).encode()).state == "crashed"
        assert driver.run("echo", b"next").result == b"next"
        assert len(runs.read_text().splitlines()) <= 2
    finally:
        engine.close()
        for process in filter(None, (worker, scheduler)):
            process.terminate()
            process.wait()


def test_a_killed_parent_leaves_nothing_behind(tmp_path):
    scratch = tmp_path / "tmp"
    scratch.mkdir()
    script = tmp_path / "parent.py"
    script.write_text(PARENT)
    environment = os.environ | {"PYTHONPATH": str(ROOT), "TMPDIR": str(scratch)}
    parent = subprocess.Popen([sys.executable, str(script), str(HERE)], stdout=subprocess.PIPE, env=environment)
    cluster_pid, worker_pid = map(int, parent.stdout.readline().split())
    family = [child.pid for child in psutil.Process(parent.pid).children(recursive=True)]
    assert {cluster_pid, worker_pid} <= set(family)
    assert list(scratch.iterdir())
    maps = [entry.path for pid in (cluster_pid, worker_pid) for entry in psutil.Process(pid).memory_maps()]
    semaphores = [Path(path) for path in maps if path.startswith("/dev/shm/")]
    assert semaphores
    os.kill(parent.pid, signal.SIGKILL)
    parent.wait()
    parent.stdout.close()
    until(lambda: all(map(gone, family)))
    until(lambda: not list(scratch.iterdir()))
    until(lambda: not any(semaphore.exists() for semaphore in semaphores))


def test_nanny_that_gave_up(worker_path):
    engine = Engine(extra_path=worker_path)
    driver = Driver(engine)
    assert driver.run("echo", b"1").result == b"1"
    first_cluster = engine.cluster_pid()
    engine._link.ensure().run(_close_nanny, nanny=True, wait=False)
    until(lambda: gone(first_cluster))
    assert driver.run("echo", b"2").result == b"2"
    engine.close()


async def _close_nanny(dask_worker):
    await dask_worker.close()


def test_nothing_heavy_is_imported(tmp_path):
    code = "import sys, core.engine; sys.exit(bool({'torch', 'triton', 'streamlit'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env={"PYTHONPATH": str(ROOT)}).returncode == 0
