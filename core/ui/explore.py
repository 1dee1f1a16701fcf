"""What the Explore page shows: which runs answer a pick, how a link is followed, and what stands at the top."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import streamlit as st

from core.glossary import explain
from core.shipped import FIRST_BACKENDS
from core.store.entry import Entry
from core.store.runfile import RunFileError
from core.ui import details, link, notice, pickers, session, shapes_link, words
from core.workload import (
    Workload,
    WorkloadError,
    applies,
    backend_of,
    from_preset,
    layer_of,
    make,
    with_changes,
)

_SHOWN = "explore:shown"
_FIRST_PRESET = "03_simple_mlp"


@dataclass(frozen=True)
class Found:
    """The runs on screen, and the picked workloads that none of them answers. `devices` are all that have runs of the pick,
    each with how many of its workloads. Where nothing of the pick is there, `shown` is what was on screen before, or the
    nearest run, and `stale` is set."""

    shown: tuple[Entry, ...]
    missing: tuple[Workload, ...]
    devices: Mapping[str, int]
    stale: bool

    @property
    def ids(self) -> tuple[str, ...]:
        """The runs' ids, in order."""
        return tuple(entry.head.id for entry in self.shown)


def follow_link() -> None:
    """Sets the pickers from the link; what is wrong with it is kept as a notice."""
    given = link.read() or link.last()
    named = {name: value for name, value in given.items() if name not in link.EXTRAS}
    told = _take_runs(given.get("run", ""), named)
    named = named or link.to_stack(from_preset(_FIRST_PRESET), FIRST_BACKENDS)
    step = link.step()
    if step is not None and step != "all" and not (step.isascii() and step.isdecimal() and int(step) >= 1):
        told = f"The link asks for step {step[:40]!r}; a step is a number from 1 on, or all. Step 2 is shown."
    unknown = pickers.unknown_field(named)
    if unknown is not None:
        told = f"The link names {unknown[:40]!r}, which this layer does not have; it is left out."
    told = pickers.load(named) or told
    notice.keep("explore", told)


def _take_runs(wanted: str, named: dict[str, str]) -> str | None:
    """Remembers the runs that a link asks for; where it names no workload, theirs is taken: of several that differ in
    their backend alone, all."""
    told = None
    own_fields = not named
    for run_id in filter(None, wanted.split(",")):
        entry = session.store().get(run_id)
        if entry is None:
            told = f"The run {run_id[:80]} is not on this machine; the nearest one is shown."
            continue
        workload = entry.head.workload
        if own_fields and not named:
            named |= link.to_run(workload)
        elif own_fields and _is_of(workload, {**named, "backend": workload.backend}):
            named["backend"] += f",{workload.backend}"
        if _is_of(workload, named):
            session.want(workload, run_id)
        else:
            told = f"The run {run_id[:80]} is of another workload than the link names; the workload is shown."
    return told


def _is_of(workload: Workload, named: Mapping[str, str]) -> bool:
    """Whether a link's fields name this workload, as one of its backends."""
    backends = named.get("backend", "").split(",")
    try:
        return workload.backend in backends and make({**named, "backend": workload.backend}) == workload
    except WorkloadError:
        return False


def runs_to_show(chosen: Sequence[Workload], layer: str) -> Found:
    """A run for each picked workload, all of one device: times of two devices say nothing of backends.

    The run asked for comes first, then the best answer, then one whose clocks were held down or that never settled, marked
    as such. Where no device has any, what was on screen of the same layer, or the nearest run.
    """
    store = session.store()
    by_device: dict[str, dict[Workload, Entry]] = {}
    for workload in chosen:
        for entry in _candidates(workload):
            by_device.setdefault(entry.head.device.name, {}).setdefault(workload, entry)
    device = _device(chosen, by_device)
    own = by_device.get(device or "", {})
    shown = [own[workload] for workload in chosen if workload in own and _readable(own[workload])]
    kept = {entry.head.workload for entry in shown}
    missing = tuple(workload for workload in chosen if workload not in kept)
    devices = {name: len(found) for name, found in by_device.items()}
    if shown:
        st.session_state[_SHOWN] = [entry.head.id for entry in shown]
        return Found(tuple(shown), missing, devices, stale=False)
    before = [entry for entry in map(store.get, st.session_state.get(_SHOWN, [])) if entry is not None]
    same_layer = [entry for entry in before if entry.head.workload.layer == layer]
    nearest = same_layer or store.nearest(chosen[0] if chosen else make({"layer": layer}), limit=1)
    return Found(tuple(one for one in nearest if _readable(one)), missing, devices, stale=True)


def _candidates(workload: Workload) -> list[Entry]:
    """Runs of the workload, the best first; some more than once."""
    store, machine = session.store(), session.machine()
    wanted = store.get(session.wanted(workload) or "")
    answers = store.answers(workload, machine.device if machine else None)
    others = [one for one in store.of(workload) if one.head.status != "failed"]
    first = [wanted] if wanted is not None and wanted.head.workload == workload else []
    return [*first, *answers, *others]


def _device(chosen: Sequence[Workload], by_device: Mapping[str, Mapping[Workload, Entry]]) -> str | None:
    """The device whose runs are shown: that of the run asked for last, else the one with runs of the most workloads, and
    of several those the one whose run is the best answer."""
    for run_id in reversed(session.wishes().values()):
        wanted = session.store().get(run_id)
        if wanted is not None and wanted.head.workload in chosen:
            return wanted.head.device.name
    # The dictionary is in the order of the best answers, and max keeps the first of equals.
    return max(by_device, key=lambda name: len(by_device[name]), default=None)


def pick_device(found: Found, chosen: Sequence[Workload]) -> None:
    """A choice where runs of the pick are there from several devices."""
    if len(found.devices) < 2 or found.stale:
        return
    now = found.shown[0].head.device.name
    picked = st.segmented_control(
        "Measured on",
        sorted(found.devices),
        format_func=lambda name: f"{name} ({found.devices[name]} of {len(chosen)})",
        default=now,
        required=True,
        key=f"explore:device:{now}",
        help="Runs of one device stand side by side at a time. " + explain("recorded"),
    )
    if picked != now:
        for workload in chosen:
            own = [entry for entry in _candidates(workload) if entry.head.device.name == picked]
            session.want(workload, own[0].head.id if own else "")
        st.rerun()


def _readable(entry: Entry) -> bool:
    """Whether the run's file still is what the list says: it may be gone or damaged since; that is said."""
    try:
        return bool(entry.manifest)
    except RunFileError as error:
        st.warning(words.plain(f"The run {entry.head.id[:80]} cannot be shown: {error}"), icon=":material/warning:")
        return False


def title(shown: Sequence[Entry]) -> None:
    """Which runs are on screen, and where their numbers come from."""
    first = shown[0].head.workload
    st.header(f"{words.layer(first)}: {' · '.join(words.backend(one.head.workload) for one in shown)}", anchor=False)
    st.markdown(words.fields(first))
    with st.container(horizontal=True, vertical_alignment="center", key="origin"):
        for place, origin in dict.fromkeys((words.place(one.head.device, one.origin), one.origin) for one in shown):
            st.badge(
                words.badge(place),
                icon={"recorded": ":material/save:", "live": ":material/sensors:"}.get(origin, ":material/upload:"),
                color="green" if origin == "live" else "blue",
                help=words.origin_help(origin),
            )
        for entry in shown:
            _state_badges(entry, named=len(shown) > 1)
        for sweep_id in dict.fromkeys(one.head.sweep for one in shown if one.head.sweep is not None):
            st.page_link(
                "pages/2_Shapes.py",
                label="Back to the sweep",
                query_params={"sweep": sweep_id},
                icon=":material/arrow_back:",
            )
        if all(one.head.sweep is None for one in shown):
            st.page_link(
                "pages/2_Shapes.py",
                label="Sweep its sizes",
                query_params=shapes_link.to_sizes(first, [one.head.workload.backend for one in shown]),
                icon=":material/stacked_line_chart:",
                help="On Shapes: what compiles anew as a size changes, when that pays back, and who is ahead where.",
            )
        st.caption(words.plain(words.origin(shown[0].manifest)) + (" (the first of them)" if len(shown) > 1 else ""))


def _state_badges(entry: Entry, *, named: bool) -> None:
    of = f"{words.backend(entry.head.workload)}: " if named else ""
    if entry.head.sweep is not None:
        st.badge(
            f"{of}point of a sweep",
            icon=":material/timeline:",
            color="violet",
            help=f"{explain('sweep')} What its process compiled for the sizes before it shaped this run, so it answers no "
            "other question.",
        )
    if entry.head.status == "unsettled":
        st.badge(
            f"{of}unsettled",
            color="orange",
            help=f"{explain('unsettled')} {words.plain(entry.manifest.settled_why)}",
        )
    if entry.head.throttled:
        st.badge(
            f"{of}clocks held down",
            color="orange",
            help=f"{explain('throttling')} {words.throttle(entry.manifest.window_clocks)}, "
            f"{words.clock_range(entry.manifest.window_clocks)}.",
        )
    if entry.head.step_us is not None and entry.head.step_us.is_wide:
        st.badge(f"{of}wide spread", color="orange", help=words.WIDE)


def not_run_yet(found: Found) -> None:
    """Names what of the pick is not there, and the ways out: the nearest runs at hand."""
    names = ", ".join(words.backend(one) for one in found.missing)
    workload = found.missing[0]
    if found.stale:
        st.warning(
            words.plain(
                f"Not run yet: {workload.title}, {workload.steps} steps. Below is still what is named above."
                if len(found.missing) == 1
                else f"Not run yet, as picked: {names}. Below is still what is named above."
            ),
            icon=":material/pending:",
        )
    else:
        where = f" on {found.shown[0].head.device.name}" if len(found.devices) > 1 else ""
        st.caption(words.plain(f"Not run yet{where}, as picked: {names}."))
    nearest = session.store().nearest(workload)
    if not nearest:
        return
    st.caption("Nearest runs at hand:")
    with st.container(horizontal=True):
        for entry in nearest:
            own = entry.head.workload
            backends = [one.backend for one in found.missing if _has_run(own, one)]
            st.page_link(
                "pages/1_Explore.py",
                label=words.plain(words.nearest(entry)),
                query_params=link.to_stack(own, list(dict.fromkeys([own.backend, *backends]))),
                icon=":material/near_me:",
            )


def _has_run(own: Workload, other: Workload) -> bool:
    """Whether a run is there of the one workload on the other's backend."""
    if not applies(backend_of(other), layer_of(own)):
        return False
    return bool(session.store().of(with_changes(own, backend=other.backend)))


def say_mismatches(shown: Sequence[Entry]) -> None:
    """A run that computed something else is told before any time is shown."""
    for entry in shown:
        told = details.mismatch_of(entry.manifest)
        if told is not None:
            st.error(words.plain(f"{words.backend(entry.head.workload)}: {told}"), icon=":material/dangerous:")


def focus(shown: Sequence[Entry]) -> Entry:
    """The run that is looked into, of those in the stack: a choice that the link carries."""
    if len(shown) == 1:
        return shown[0]
    by_backend = {entry.head.workload.backend: entry for entry in shown}
    wanted = link.focus()
    key = "explore:focus"
    if link.view_arrived("focus") or st.session_state.get(key) not in by_backend:
        st.session_state[key] = wanted if wanted in by_backend else next(iter(by_backend))
    st.segmented_control(
        "Look into one of them",
        list(by_backend),
        format_func=lambda name: words.backend(by_backend[name].head.workload),
        key=key,
        required=True,
        help="Its timeline, kernels, operators and compiles follow below.",
    )
    name = st.session_state[key]
    if wanted is not None or name != next(iter(by_backend)):
        link.write_focus(name)
    return by_backend[name]
