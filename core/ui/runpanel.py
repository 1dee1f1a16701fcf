"""The run panel: what a live run would cost, the button, progress with cancel, and what became of it."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import streamlit as st

from core.shipped import FRESH_PROCESS_COMPILES
from core.store import runfile
from core.store.manifest import Machine, protocol_for
from core.ui import link, session, words
from core.workload import Workload, WorkloadError, backend_of, check_fits, estimate

_JOB = "run:job"
_PROBLEM = "run:problem"
_ASK_ABOVE_S = 60.0
_POLL_S = 0.4


def running_job() -> Any:
    """This visit's job, None where it has none."""
    job_id = st.session_state.get(_JOB)
    engine = session.engine()
    return engine.job(job_id) if job_id and engine is not None else None


def _adopt(workload: Workload) -> None:
    """Takes up a live job of the same workload: the visitor has reloaded the page, or another one asked for it."""
    if session.engine() is not None and running_job() is None:
        for job in session.engine().jobs():
            if job.state in ("queued", "running") and job.key.startswith(f"run:{workload.key}:"):
                st.session_state[_JOB] = job.id


def show(workload: Workload, *, answered: bool, live: bool) -> None:
    """The panel for a workload. `answered` says that a run of it is on screen already, `live` that it was made here."""
    _adopt(workload)
    job = running_job()
    if job is not None and job.state in ("queued", "running"):
        _progress()
        return
    if job is not None:
        if job.key.startswith(f"run:{workload.key}:"):
            _ended(job)
        else:
            _ended_elsewhere(job)
    if st.session_state.get(_PROBLEM):
        st.error(words.plain(st.session_state[_PROBLEM]), icon=":material/error:")
    if session.engine() is None:
        if not answered:
            st.caption(words.plain(session.machine_problem() or "Live runs are not possible here."))
        return
    machine = session.machine()
    if machine is None:
        session.wait_for_machine("Live runs: the worker is starting (it imports torch and looks at this machine) ...")
        return
    _offer(workload, machine, answered=answered, live=live)


def _offer(workload: Workload, machine: Machine, *, answered: bool, live: bool) -> None:
    gap = machine.gaps.get(workload.backend)
    if gap is not None:
        st.caption(gap)
        return
    try:
        # Against all of the device's memory: how much is free changes, and the worker looks again.
        whole = replace(machine.rates, free_memory_bytes=machine.device.memory_bytes)
        check_fits(workload, whole, f"{machine.short} in all")
    except WorkloadError as problem:
        st.warning(words.plain(problem), icon=":material/memory:")
        return
    may_be_fresh = backend_of(workload).compiles
    fresh = FRESH_PROCESS_COMPILES if may_be_fresh and st.session_state.get("run:fresh") else 0
    likely = estimate(workload, machine.rates, fresh_processes=fresh)
    seconds = likely.seconds or 0.0
    compiling = f", {_duration(likely.compile_s)} of it compiling" if likely.compile_s else ""
    cost = f"{_duration(seconds)}{compiling}, and {words.memory(likely.memory_bytes)} (estimated)"
    verb = "Run again" if live else "Run live"
    if seconds > session.RUN_TIMEOUT_S:
        st.warning(
            f"This would take about {_duration(seconds)}, more than the {_duration(session.RUN_TIMEOUT_S)} that a run may "
            "take; choose smaller sizes or fewer steps.",
            icon=":material/timer:",
        )
        return
    long_on_cpu = machine.device.kind == "cpu" and seconds > _ASK_ABOVE_S
    with st.container(horizontal=True, vertical_alignment="center"):
        sure = True
        if long_on_cpu:
            sure = st.checkbox(f"Yes, use {_duration(seconds)} of this CPU", key="run:sure")
        if may_be_fresh:
            st.checkbox(
                "and in fresh processes",
                key="run:fresh",
                help=f"Also compiles in {FRESH_PROCESS_COMPILES} newly started processes, as a plain script would: "
                "slower, and often a different kernel.",
            )
        st.button(
            f"{verb} on {machine.short}",
            type="secondary" if answered else "primary",
            icon=":material/play_arrow:",
            disabled=not sure,
            key="run:start",
            on_click=_start,
            args=(workload, fresh),
            help=f"{machine.device.name}. The estimate rests on a matrix product timed on this machine.",
        )
        st.caption(f"{words.device(machine.device)}: {cost}")


def _start(workload: Workload, fresh: int) -> None:
    st.session_state.pop("run:shown", None)
    try:
        st.session_state[_JOB] = session.submit_run(workload, protocol_for(workload, fresh))
        st.session_state.pop(_PROBLEM, None)
    except OSError as error:
        folder = error.filename or session.store().home
        st.session_state[_PROBLEM] = f"A run could not be kept: {folder} cannot be written ({error.strerror})."


@st.fragment(run_every=_POLL_S)
def _progress() -> None:
    job = running_job()
    if job is None or job.state not in ("queued", "running"):
        st.rerun(scope="app")
    with st.container(border=True):
        if job.state == "queued" and job.ahead:
            st.progress(0.0, text=f"Waiting: {job.ahead} run(s) ahead on this device")
        else:
            share = min(job.done / job.total, 1.0) if job.total else 0.0
            since = f" · {time.time() - job.started_s:.0f} s" if job.started_s else ""
            st.progress(share, text=f"{job.title}: {job.text or 'starting'}{since}")
        st.button("Cancel", key="run:cancel", icon=":material/close:", on_click=_cancel, args=(job.id,))


def _cancel(job_id: str) -> None:
    session.engine().cancel(job_id)


def _ended(job: Any) -> None:
    if job.state == "done":
        manifest = runfile.read_manifest(job.result)
        if manifest.failure is not None:  # the last chart stays: a failed run has none to put in its place
            st.error(words.plain(manifest.failure.sentence), icon=":material/error:")
            _log(manifest.failure.log)
        elif st.session_state.get("run:shown") != job.id:
            st.session_state["run:shown"] = job.id
            st.session_state["run:wanted"] = manifest.id
            st.rerun()
    elif job.state == "cancelled":
        st.info("The run was cancelled, here or by another visitor who asked for it too; nothing of it was kept.")
    elif job.failure is not None:
        st.error(words.plain(job.failure.sentence), icon=":material/error:")
        _log(job.failure.log)


def _ended_elsewhere(job: Any) -> None:
    """A line about a run that ended while the visitor looked at something else; gone once they have followed it."""
    if job.state != "done":
        why = job.failure.sentence if job.failure is not None else "it was cancelled"
        st.caption(words.plain(f"Your run of {job.title} has ended: {why}"))
    elif st.session_state.get("run:shown") != job.id:
        manifest = runfile.read_manifest(job.result)
        st.page_link(
            "pages/1_Explore.py",
            label=words.plain(f"Your run is done: {job.title}"),
            query_params=link.to_run(manifest.workload, manifest.id),
            icon=":material/done:",
        )


def _log(text: str) -> None:
    if text.strip():
        with st.expander("Log"):
            st.code(text[-6000:], language="text")


def _duration(seconds: float) -> str:
    if seconds < 1:
        return "under 1 s"
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"
