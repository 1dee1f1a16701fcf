"""The Shapes page's run panel: what a sweep would cost here, its buttons, its progress, and what became of it."""

from __future__ import annotations

import time
from typing import Any

import streamlit as st

from core.analysis.wording import counted
from core.conductor import lost
from core.glossary import explain
from core.store.manifest import Machine
from core.store.sweepentry import SweepEntry
from core.sweep import Sweep, backend_titles, plan
from core.sweep_estimate import Likely, estimate_sweep
from core.ui import session, shapes, shapes_pickers, words
from core.ui.shapes import Found
from core.ui.shapes_data import shown

_PROBLEM = "shapes:problem"
_REFRESHED = "shapes:refreshed"
_ALLOWED = "shapes:allowed"
_POLL_S = 0.5
#: How often the charts follow a sweep that is being measured.
_REFRESH_S = 4.0
_ASK_ABOVE_S = 60.0


def show(found: Found) -> None:
    """The panel for the picked sweep, and the progress of whatever of it runs."""
    own = found.entry if found.entry is not None and not found.stale else None
    progress = session.sweep_progress(own.head.id) if own is not None else None
    if own is not None and shapes.is_running(own.head.id):
        _progress(own.head.id)
        return
    if own is not None and progress is not None and _went_on(own):
        st.rerun()
    if st.session_state.get(_PROBLEM):
        st.error(words.plain(st.session_state[_PROBLEM]), icon=":material/error:")
    if progress is not None:
        _ended(progress)
    if found.picked is None:
        return
    gone = lost(shown(own).manifests) if own is not None and own.origin == "live" else frozenset()
    unfinished = own is None or (own.origin == "live" and (not own.complete or bool(gone)))
    if session.engine() is None:
        if unfinished:
            st.caption(words.plain(session.machine_problem() or "Live runs are not possible here."))
        return
    machine = session.machine()
    if machine is None:
        session.wait_for_machine("Live runs: the worker is starting (it imports torch and looks at this machine) ...")
    elif unfinished:
        _offer(found.picked, machine, own, gone)
    else:
        with st.expander(f"Run this sweep on {machine.short}", icon=":material/play_arrow:"):
            _offer(found.picked, machine, None, frozenset())


def _went_on(own: SweepEntry) -> bool:
    """Whether points were added since the page began to draw: its last one may come in while the page is being drawn, and
    nothing would draw it again."""
    now = session.sweeps().get(own.head.id)
    return now is not None and now.stamp != own.stamp


def _offer(sweep: Sweep, machine: Machine, unfinished: SweepEntry | None, gone: frozenset[int]) -> None:
    """The button, with what the sweep would take; a sentence where a backend cannot run here. `gone` are the points of an
    unfinished one whose process was lost with them."""
    gaps = {name: machine.gaps[name] for name in sweep.backends if name in machine.gaps}
    if gaps:
        for sentence in dict.fromkeys(gaps.values()):
            st.caption(sentence)
        titles = dict(zip(sweep.backends, backend_titles(sweep), strict=True))
        if len(gaps) < len(sweep.backends):
            st.button(
                f"Leave out {', '.join(titles[name] for name in gaps)}", key="shapes:leave-out",
                icon=":material/remove_circle:", on_click=shapes_pickers.leave_out, args=(tuple(gaps),),
            )  # fmt: skip
        return
    done = unfinished.done - gone if unfinished is not None else frozenset()
    likely = _likely(sweep.key, machine.device.name, done, sweep, machine)
    if likely.unfit_why is not None:
        st.caption(
            words.plain(f"{counted(likely.unfit, 'run')} of the sweep will fail and be named: {likely.unfit_why}")
        )
    with st.container(horizontal=True, vertical_alignment="center"):
        sure = True
        if machine.device.kind == "cpu" and likely.seconds > _ASK_ABOVE_S:
            sure = _allowed(sweep, likely)
        st.button(
            _asks(sweep, unfinished, done, machine),
            type="primary", icon=":material/play_arrow:", disabled=not sure, key="shapes:start", on_click=_start,
            args=(sweep, unfinished.head.id if unfinished is not None else None),
            help=f"{words.plain(machine.device.name)}. Each run is kept as it finishes. {explain('shared')} "
            "A process that has to be started anew repeats its finished calls, unmeasured.",
        )  # fmt: skip
        compiling = f", up to {words.duration(likely.compile_s)} of it compiling" if likely.compile_s else ""
        takes = f"{words.predicted_duration(likely.seconds)}{compiling}"
        st.caption(
            f"{words.plain(words.device(machine.device))}, predicted: {takes}; at most "
            f"{words.memory(likely.memory_bytes)} of memory. Computed, and rough: from FLOPs and bytes, and as if every "
            "call of a backend that compiles had to compile anew.",
            help=explain("prediction"),
        )


def _asks(sweep: Sweep, unfinished: SweepEntry | None, done: frozenset[int], machine: Machine) -> str:
    in_all = len(plan(sweep))
    if unfinished is None:
        return f"Run {counted(in_all, 'run')} on {machine.short}"
    if unfinished.complete:
        return f"Try again {counted(in_all - len(done), 'run')} whose process died"
    missing = in_all - len(done)
    return f"Resume: {missing:,} of {counted(in_all, 'run')} {'is' if missing == 1 else 'are'} missing"


def _allowed(sweep: Sweep, likely: Likely) -> bool:
    """The tick without which a long sweep does not take this CPU. It stays while the sweep runs and its box is gone."""
    given: set[str] = st.session_state.setdefault(_ALLOWED, set())
    key = f"shapes:sure:{sweep.key}"
    st.session_state.setdefault(key, sweep.key in given)
    sure = st.checkbox(
        f"Yes, use {words.duration(likely.seconds)} of this CPU", key=key,
        help="What the prediction says. The button beside it is grey until this is ticked.",
    )  # fmt: skip
    (given.add if sure else given.discard)(sweep.key)
    if not sure:
        st.caption("Tick to allow it.", width="content")
    return sure


@st.cache_data(max_entries=64, show_spinner=False)
def _likely(key: str, device: str, done: frozenset[int], _sweep: Sweep, _machine: Machine) -> Likely:
    return estimate_sweep(_sweep, done, _machine)


def _start(sweep: Sweep, unfinished: str | None) -> None:
    try:
        sweep_id = session.resume_sweep(unfinished) if unfinished is not None else session.start_sweep(sweep)
    except OSError as error:
        folder = error.filename or session.store().home
        st.session_state[_PROBLEM] = f"The sweep could not be kept: {folder} cannot be written ({error.strerror})."
        return
    st.session_state.pop(_PROBLEM, None)
    st.session_state[_REFRESHED] = (0, time.monotonic())
    shapes.want(sweep_id)


@st.fragment(run_every=_POLL_S)
def _progress(sweep_id: str) -> None:
    progress = session.sweep_progress(sweep_id)
    if progress is None or not shapes.is_running(sweep_id):
        st.rerun(scope="app")
    # The charts follow, but not with every point: the visitor is reading them.
    done, at = st.session_state.get(_REFRESHED, (progress.done, time.monotonic()))
    if progress.done != done and time.monotonic() - at > _REFRESH_S:
        st.session_state[_REFRESHED] = (progress.done, time.monotonic())
        st.rerun(scope="app")
    st.session_state.setdefault(_REFRESHED, (done, at))
    with st.container(border=True):
        share = progress.done / progress.total if progress.total else 0.0
        st.progress(min(share, 1.0), text=words.plain(_told(progress)))
        st.button("Cancel", key="shapes:cancel", icon=":material/close:", on_click=session.cancel_sweep, args=(sweep_id,),
                  help="What is measured stays, and the sweep can be resumed.")  # fmt: skip


def _told(progress: Any) -> str:
    left = f" · {words.predicted_duration(progress.seconds_left)} left" if progress.seconds_left is not None else ""
    at = ", ".join(part for part in (progress.backend, progress.point) if part)
    doing = f": {progress.text}" if progress.text else ""
    return f"{progress.done:,} of {counted(progress.total, 'run')}{left} · {at or progress.state}{doing}"


def _ended(progress: Any) -> None:
    """How the sweep ended, where it did not go through."""
    if progress.state == "cancelled":
        st.info(f"Cancelled after {progress.done:,} of {counted(progress.total, 'run')}; what is measured is kept.")
    elif progress.problem:
        st.error(words.plain(progress.problem), icon=":material/error:")
        if progress.log.strip():
            with st.expander("Log"):
                st.code(progress.log[-6000:], language="text")
