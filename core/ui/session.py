"""What all visitors share: the store, the engine with its worker, sweeps being measured, and what is known of this machine."""

from __future__ import annotations

import importlib.util
import os
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import streamlit as st

from core.conductor import Conductor, Progress
from core.conductor_jobs import Turns, execute_on
from core.store import runfile
from core.store.entry import Entry
from core.store.manifest import Machine, Protocol
from core.store.store import Store, default_home
from core.store.sweepentry import SweepEntry
from core.store.sweeps import Sweeps
from core.sweep import Sweep
from core.trace import Tables
from core.ui import words
from core.workload import Workload

RUN_TIMEOUT_S = 1800.0
EXAMINATION = "examination"
EXAMINATION_TIMEOUT_S = 300.0
#: A worker is stopped in a moment; a process that is just starting takes longer.
_STOP_S = 3.0


@st.cache_resource
def store() -> Store:
    """The one store of this server."""
    return Store(default_home())


def can_run() -> bool:
    """Whether live runs are possible at all: torch here, or a scheduler elsewhere. Looks without importing."""
    elsewhere = bool(os.environ.get("FUSIONSCOPE_SCHEDULER"))
    here = importlib.util.find_spec("torch") is not None
    return importlib.util.find_spec("distributed") is not None and (elsewhere or here)


@st.cache_resource
def _engine() -> Any:
    # Only where live runs are possible: the small install has neither dask nor torch.
    from core.engine import Engine, TlsFiles

    address = os.environ.get("FUSIONSCOPE_SCHEDULER")
    tls = None
    if address and os.environ.get("FUSIONSCOPE_TLS_CA"):
        ca, cert, key = (Path(os.environ.get(f"FUSIONSCOPE_TLS_{part}", "")) for part in ("CA", "CERT", "KEY"))
        tls = TlsFiles(ca=ca, cert=cert, key=key)
    keeper = store()

    def keep(job: Any) -> None:
        if job.result is not None and job.key.startswith("run:"):
            keeper.add(job.result)

    return Engine(address=address, tls=tls, timeout_s=RUN_TIMEOUT_S, on_done=keep, log_folder=default_home() / "logs")


def engine() -> Any:
    """The engine, or None where this install can only view, or where the scheduler it is told to use cannot be used."""
    if not can_run():
        return None
    from core.engine import EngineError

    try:
        return _engine()
    except EngineError as error:
        _look().problem = error.sentence
        return None


def submit_run(workload: Workload, protocol: Protocol) -> str:
    """Queues a run; the job's id. Two visitors who ask for the same share one job.

    Raises OSError where the run could not be kept: before it is measured, not after.
    """
    store().check_writable()
    order = msgspec.json.encode({"workload": workload, "protocol": protocol})
    key = f"run:{workload.key}:{protocol.fresh_process_compiles}"
    return str(_engine().submit("core.bench.tasks:run_workload", order, key=key, title=workload.title))


def submit_examination() -> str:
    """Queues the doctor's checks that need torch; the job's id. Visitors who ask at the same time share one job."""
    title = "Looking closer"
    target, limit_s = "core.bench.tasks:examine", EXAMINATION_TIMEOUT_S
    return str(_engine().submit(target, b"", key=EXAMINATION, title=title, timeout_s=limit_s))


def sweeps() -> Sweeps:
    """The sweeps of this server's store."""
    return store().sweeps


@dataclass
class _Conductors:
    """The sweeps that this server has carried out or is about to, by their id."""

    by_id: dict[str, Conductor] = field(default_factory=dict)
    turns: Turns = field(default_factory=Turns)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def conduct(self, entry: SweepEntry) -> None:
        """Goes on with a sweep, unless that is under way. Called with the lock held."""
        known = self.by_id.get(entry.head.id)
        if known is None or not known.live:
            conductor = self.by_id[entry.head.id] = Conductor(sweeps(), entry, execute_on(_engine()), self.turns)
            conductor.start()


@st.cache_resource
def _conductors() -> _Conductors:
    return _Conductors()


def start_sweep(sweep: Sweep) -> str:
    """Begins a sweep; its id. Who asks for one that is under way joins it. Raises OSError where it could not be kept."""
    found = _conductors()
    with found.lock:
        joined = next((one for one in found.by_id.values() if one.live and one.entry.head.sweep == sweep), None)
        if joined is not None:
            return joined.entry.head.id
        entry = sweeps().create(sweep)
        found.conduct(entry)
        return entry.head.id


def resume_sweep(sweep_id: str) -> str:
    """Goes on with a sweep where it was left; its id. Nothing happens where it was deleted meanwhile."""
    found, entry = _conductors(), sweeps().get(sweep_id)
    with found.lock:
        if entry is not None:
            found.conduct(entry)
    return sweep_id


def sweep_progress(sweep_id: str) -> Progress | None:
    """Where a sweep stands, or how it ended; None where this server has not carried it out."""
    conductor = _conductors().by_id.get(sweep_id)
    return conductor.progress if conductor is not None else None


def cancel_sweep(sweep_id: str) -> None:
    """Stops a sweep; its points so far stay, and it can be resumed."""
    conductor = _conductors().by_id.get(sweep_id)
    if conductor is not None:
        conductor.cancel()


def stop_sweep(sweep_id: str) -> bool:
    """Stops a sweep, and waits for its end; whether it was under way. It may need longer than this waits."""
    conductor = _conductors().by_id.get(sweep_id)
    if conductor is None or not conductor.live:
        return False
    conductor.cancel()
    conductor.join(_STOP_S)
    return True


def want(workload: Workload, run_id: str) -> None:
    """Remembers which run of a workload this visit wants to see: asked for by a link, chosen, or just made."""
    known: dict[str, str] = st.session_state.setdefault("runs wanted", {})
    known.pop(workload.key, None)  # so that the latest wish is the last one
    known[workload.key] = run_id


def wanted(workload: Workload) -> str | None:
    """The run of the workload that this visit wants to see, None where any will do."""
    return wishes().get(workload.key)


def wishes() -> dict[str, str]:
    """The runs that this visit wants to see, by their workload's key, the latest wish last."""
    found: dict[str, str] = st.session_state.get("runs wanted", {})
    return found


@dataclass
class _Look:
    """The job that looks at this machine; it also warms the worker up. None until somebody has waited for it."""

    job_id: str | None = None
    found: Machine | None = None
    problem: str | None = None


@st.cache_resource
def _look() -> _Look:
    return _Look()


def start_worker() -> None:
    """Starts the worker, which imports torch and looks at this machine.

    Called once a page stands in a browser and waits: on a small machine the import would slow the first page down.
    """
    look, found = _look(), engine()
    if found is not None and look.job_id is None and look.problem is None:
        look.job_id = found.submit("core.bench.tasks:look", b"", key="look", title="Looking at this machine")


def try_again() -> None:
    """Forgets why there was no worker, so that the next wait starts one."""
    _look().problem = None


def machine() -> Machine | None:
    """What this machine is, None while that is not known yet (or where there is no worker, or it failed)."""
    look = _look()
    if look.found is None and look.job_id is not None:
        job = _engine().job(look.job_id)
        if job is not None and job.result is not None:
            look.found, look.problem = msgspec.json.decode(job.result, type=Machine), None
        elif job is None or job.failure is not None:
            look.job_id, look.problem = (
                None,
                job.failure.sentence if job is not None and job.failure is not None else None,
            )
    return look.found


def has_gpu() -> bool:
    """Whether live runs are known to happen on a GPU."""
    found = machine()
    return found is not None and found.device.kind == "gpu"


def machine_problem() -> str | None:
    """Why there is no worker, None where there is one or it is still starting."""
    if not can_run():
        return (
            "This is the small install: it shows recordings and runs nothing. For live runs, install torch: make run."
        )
    return _look().problem


@st.fragment(run_every=0.5)
def wait_for_machine(sentence: str) -> None:
    """Says that the worker is starting, and draws the page anew once it has. A fragment, on a clock of its own."""
    if st.session_state.get("machine:waiting"):
        start_worker()
    st.session_state["machine:waiting"] = True
    if machine() is not None:
        st.rerun(scope="app")
    problem = machine_problem()
    if problem is None:
        st.caption(sentence)
        return
    st.caption(words.plain(problem))
    st.button("Try again", key="machine:again", on_click=try_again)


@st.cache_resource(max_entries=64, show_spinner=False)
def _tables(path: Path, stamp: str, _entry: Entry) -> Tables | None:
    return store().tables(_entry)


def tables(entry: Entry) -> Tables | None:
    """The run's tables, memory-mapped and shared by all visitors; None where it has no trace.

    Raises TraceError or RunFileError, one sentence, where its file is damaged.
    """
    return _tables(entry.path, entry.stamp, entry)


def trace_bytes(entry: Entry) -> bytes | None:
    """The run's trace as it lies in its file. Raises RunFileError."""
    return runfile.read_trace_bytes(entry.path)
