"""The run panel: what live runs would cost, the button, progress with cancel, and what became of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import streamlit as st

from core.estimate import Estimate, check_fits, estimate, warning
from core.glossary import explain
from core.shipped import FRESH_PROCESS_COMPILES
from core.store import runfile
from core.store.manifest import Machine, protocol_for
from core.ui import jobbox, link, session, words
from core.workload import Workload, WorkloadError, backend_of

_JOBS = "run:jobs"
_SEEN = "run:seen"
_PROBLEM = "run:problem"
_ASK_ABOVE_S = 60.0
_POLL_S = 0.4


def show(chosen: Sequence[Workload], missing: Sequence[Workload], *, live: bool) -> None:
    """The panel for the picked workloads. `missing` are those without an answer on screen, `live` says that the others
    were made here."""
    _adopt(chosen)
    jobs = _jobs()
    if any(job.state in jobbox.LIVE_STATES for job in jobs):
        _progress()
        return
    for job in jobs:
        mine = next((one for one in chosen if job.key.startswith(f"run:{one.key}:")), None)
        if mine is None:
            _ended_elsewhere(job)
        else:
            _ended(job, mine)
    if st.session_state.get(_PROBLEM):
        st.error(words.plain(st.session_state[_PROBLEM]), icon=":material/error:")
    if session.engine() is None:
        if missing:
            st.caption(words.plain(session.machine_problem() or "Live runs are not possible here."))
        return
    machine = session.machine()
    if machine is None:
        session.wait_for_machine("Live runs: the worker is starting (it imports torch and looks at this machine) ...")
        return
    wanting = [one for one in missing if one.backend not in machine.gaps]
    if wanting:
        _offer(wanting, machine, answered=False, live=False)
        return
    for sentence in dict.fromkeys(machine.gaps[one.backend] for one in missing):
        st.caption(sentence)
    with st.expander(f"Run live on {machine.short}", icon=":material/play_arrow:"):
        _offer(chosen, machine, answered=True, live=live)


def _jobs() -> list[Any]:
    """This visit's jobs, in the order in which they were asked for."""
    engine = session.engine()
    if engine is None:
        return []
    return [job for job in (engine.job(one) for one in st.session_state.get(_JOBS, [])) if job is not None]


def _adopt(chosen: Sequence[Workload]) -> None:
    """Takes up live jobs of the same workloads: the visitor has reloaded the page, or another one asked for them."""
    if session.engine() is None:
        return
    known = st.session_state.setdefault(_JOBS, [])
    for job in session.engine().jobs():
        same = any(job.key.startswith(f"run:{one.key}:") for one in chosen)
        if same and job.state in jobbox.LIVE_STATES and job.id not in known:
            known.append(job.id)


def _offer(workloads: Sequence[Workload], machine: Machine, *, answered: bool, live: bool) -> None:
    """The button for every workload that can run here; a sentence for each that cannot."""
    can_run = [one for one in workloads if _can_run(one, machine)]
    if not can_run:
        return
    compiling = any(backend_of(one).compiles for one in can_run)
    fresh = FRESH_PROCESS_COMPILES if compiling and st.session_state.get("run:fresh") else 0
    likely = [estimate(one, machine.rates, fresh_processes=fresh if backend_of(one).compiles else 0) for one in can_run]
    seconds = [one.seconds or 0.0 for one in likely]
    if max(seconds) > session.RUN_TIMEOUT_S:
        st.warning(
            f"This would take about {words.duration(max(seconds))}, more than the "
            f"{words.duration(session.RUN_TIMEOUT_S)} that a run may take; choose smaller sizes or fewer steps.",
            icon=":material/timer:",
        )
        return
    for sentence in dict.fromkeys(told for one in can_run if (told := warning(one)) is not None):
        st.warning(sentence, icon=":material/warning:")
    verb = "Run again" if live and answered else "Run live"
    count = f" ({len(can_run)} runs)" if len(can_run) > 1 else ""
    with st.container(horizontal=True, vertical_alignment="center"):
        sure = True
        if machine.device.kind == "cpu" and sum(seconds) > _ASK_ABOVE_S:
            sure = st.checkbox(f"Yes, use {words.duration(sum(seconds))} of this CPU", key="run:sure")
        if compiling:
            st.checkbox(
                "and in fresh processes",
                key="run:fresh",
                help=f"Also compiles in {FRESH_PROCESS_COMPILES} newly started processes, as a plain script would: "
                "slower, and often a different kernel.",
            )
        st.button(
            f"{verb} on {machine.short}{count}",
            type="secondary" if answered else "primary",
            icon=":material/play_arrow:",
            disabled=not sure,
            key="run:start",
            on_click=_start,
            args=(can_run, fresh),
            help=f"{machine.device.name}. The prediction rests on a matrix product and a copy timed on this machine.",
        )
        st.caption(f"{words.device(machine.device)}, predicted: {_cost(likely)}", help=explain("prediction"))


def _can_run(workload: Workload, machine: Machine) -> bool:
    gap = machine.gaps.get(workload.backend)
    if gap is not None:
        st.caption(gap)
        return False
    try:
        # Against all of the device's memory: how much is free changes, and the worker looks again.
        whole = replace(machine.rates, free_memory_bytes=machine.device.memory_bytes)
        check_fits(workload, whole, f"{machine.short} in all")
    except WorkloadError as problem:
        st.warning(words.plain(problem), icon=":material/memory:")
        return False
    return True


def _cost(likely: Sequence[Estimate]) -> str:
    compile_s = sum(one.compile_s or 0.0 for one in likely)
    work = words.time(max(one.work_us or 0.0 for one in likely))
    memory = words.memory(max(one.memory_bytes for one in likely))
    compiling = f", {words.duration(compile_s)} of it compiling" if compile_s else ""
    return f"{words.duration(sum(one.seconds or 0.0 for one in likely))}{compiling}; {work} of work a step, {memory}"


def _start(workloads: Sequence[Workload], fresh: int) -> None:
    try:
        st.session_state[_JOBS] = [session.submit_run(one, protocol_for(one, fresh)) for one in workloads]
        st.session_state.pop(_PROBLEM, None)
    except OSError as error:
        folder = error.filename or session.store().home
        st.session_state[_PROBLEM] = f"A run could not be kept: {folder} cannot be written ({error.strerror})."


@st.fragment(run_every=_POLL_S)
def _progress() -> None:
    jobs = _jobs()
    if not any(job.state in jobbox.LIVE_STATES for job in jobs):
        st.rerun(scope="app")
    with st.container(border=True):
        for job in jobs:
            jobbox.bar(job, starting="starting")
        st.button("Cancel", key="run:cancel", icon=":material/close:", on_click=_cancel)


def _cancel() -> None:
    for job in _jobs():
        if job.state in jobbox.LIVE_STATES:
            session.engine().cancel(job.id)


def _ended(job: Any, workload: Workload) -> None:
    told = f"{words.backend(workload)}: "
    if job.state == "done":
        manifest = runfile.read_manifest(job.result)
        if manifest.failure is not None:  # the last chart stays: a failed run has none to put in its place
            st.error(words.plain(told + manifest.failure.sentence), icon=":material/error:")
            _log(manifest.failure.log)
        elif job.id not in st.session_state.setdefault(_SEEN, set()):
            st.session_state[_SEEN].add(job.id)
            if session.wanted(workload) != manifest.id:  # a link to the run has asked for it already
                session.want(workload, manifest.id)
                st.rerun()
    elif job.state == "cancelled":
        st.info(told + "cancelled, here or by another visitor who asked for it too; nothing of it was kept.")
    elif job.failure is not None:
        st.error(words.plain(told + job.failure.sentence), icon=":material/error:")
        _log(job.failure.log)


def _ended_elsewhere(job: Any) -> None:
    """A line about a run that ended while the visitor looked at something else; gone once they have followed it, or read
    that there is nothing to follow."""
    if job.id in st.session_state.setdefault(_SEEN, set()):
        return
    if job.state != "done":
        st.session_state[_SEEN].add(job.id)
        why = job.failure.sentence if job.failure is not None else "it was cancelled"
        st.caption(words.plain(f"Your run of {job.title} has ended: {why}"))
    else:
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
