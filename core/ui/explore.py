"""What the Explore page shows: which runs answer a pick, how a link is followed, and what stands at the top."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import streamlit as st

from core.analysis.numerics import Difference, mismatch
from core.store.entry import Entry
from core.ui import link, pickers, session, words
from core.workload import Workload, from_preset, make, with_changes

_SHOWN = "explore:shown"
_NOTICE = "explore:notice"
_FIRST_PRESET = "03_simple_mlp"
#: What a first look at a layer stacks, where the layer has them.
FIRST_BACKENDS = ("eager", "compile", "liger")


@dataclass(frozen=True)
class Found:
    """The runs on screen, and the picked workloads that none of them answers. Where nothing of the pick is there, `shown`
    is what was on screen before, or the nearest run, and `stale` is set."""

    shown: tuple[Entry, ...]
    missing: tuple[Workload, ...]
    stale: bool

    @property
    def ids(self) -> tuple[str, ...]:
        """The runs' ids, in order."""
        return tuple(entry.head.id for entry in self.shown)


def notice() -> str | None:
    """What was wrong with the link that was last followed."""
    found: str | None = st.session_state.get(_NOTICE)
    return found


def follow_link() -> str | None:
    """Sets the pickers from the link; what is wrong with it, in a sentence."""
    given = link.read() or link.last()
    named = {name: value for name, value in given.items() if name not in link.EXTRAS}
    if not given:
        named = link.to_stack(from_preset(_FIRST_PRESET), FIRST_BACKENDS)
    told = _take_runs(given.get("run", ""), named)
    step = link.step()
    if step is not None and step != "all" and not (step.isascii() and step.isdecimal() and int(step) >= 1):
        told = f"The link asks for step {step[:40]!r}; a step is a number from 1 on, or all. Step 2 is shown."
    unknown = pickers.unknown_field(named)
    if unknown is not None:
        told = f"The link names {unknown[:40]!r}, which this layer does not have; it is left out."
    told = pickers.load(named) or told
    st.session_state[_NOTICE] = told
    return told


def _take_runs(wanted: str, named: dict[str, str]) -> str | None:
    """Remembers the runs that a link asks for; where it names no workload, the first run's own is taken."""
    told = None
    for run_id in filter(None, wanted.split(",")):
        entry = session.store().get(run_id)
        if entry is None:
            told = f"The run {run_id[:80]} is not on this machine; the nearest one is shown."
            continue
        own = link.to_run(entry.head.workload)
        if not named:
            named |= own
        backends = named.get("backend", own["backend"]).split(",")
        same = all(own.get(name) == value for name, value in named.items() if name != "backend")
        if same and own["backend"] in backends:
            session.want(entry.head.workload, run_id)
        else:
            told = f"The run {run_id[:80]} is of another workload than the link names; the workload is shown."
    return told


def runs_to_show(chosen: Sequence[Workload]) -> Found:
    """A run for each picked workload: the one asked for, else the best answer, else one whose clocks were held down or
    that never settled, marked as such; where there is none of any, what was on screen, or the nearest run."""
    store = session.store()
    machine = session.machine()
    shown: list[Entry] = []
    missing: list[Workload] = []
    for workload in chosen:
        entry = store.get(session.wanted(workload) or "")
        if entry is None or entry.head.workload != workload:
            answers = store.answers(workload, machine.device if machine else None)
            others = [one for one in store.of(workload) if one.head.status != "failed"]
            entry = next(iter((*answers, *others)), None)
        if entry is None:
            missing.append(workload)
        else:
            shown.append(entry)
    if shown:
        st.session_state[_SHOWN] = [entry.head.id for entry in shown]
        return Found(tuple(shown), tuple(missing), stale=False)
    before = [entry for entry in map(store.get, st.session_state.get(_SHOWN, [])) if entry is not None]
    nearest = before or store.nearest(chosen[0] if chosen else make({}), limit=1)
    return Found(tuple(nearest), tuple(missing), stale=True)


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
        st.caption(words.plain(words.origin(shown[0].manifest)) + (" (the first of them)" if len(shown) > 1 else ""))


def _state_badges(entry: Entry, *, named: bool) -> None:
    of = f"{words.backend(entry.head.workload)}: " if named else ""
    if entry.head.status == "unsettled":
        st.badge(
            f"{of}unsettled",
            color="orange",
            help=f"{words.explain('unsettled')} {words.plain(entry.manifest.settled_why)}",
        )
    if entry.head.throttled:
        st.badge(
            f"{of}clocks held down",
            color="orange",
            help=f"{words.explain('throttling')} {words.throttle(entry.manifest.window_clocks)}, "
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
                else f"Not run yet at these sizes: {names}. Below is still what is named above."
            ),
            icon=":material/pending:",
        )
    else:
        st.caption(words.plain(f"Not run yet at these sizes: {names}."))
    nearest = session.store().nearest(workload)
    if not nearest:
        return
    st.caption("Nearest runs at hand:")
    with st.container(horizontal=True):
        for entry in nearest:
            own = entry.head.workload
            backends = [
                one.backend for one in found.missing if session.store().of(with_changes(own, backend=one.backend))
            ]
            st.page_link(
                "pages/1_Explore.py",
                label=words.plain(words.nearest(entry)),
                query_params=link.to_stack(own, list(dict.fromkeys([own.backend, *backends]))),
                icon=":material/near_me:",
            )


def say_mismatches(shown: Sequence[Entry]) -> None:
    """A run that computed something else is told before any time is shown."""
    for entry in shown:
        manifest = entry.manifest
        told = mismatch([Difference(e.of, e.relative, e.finite) for e in manifest.errors], manifest.workload.dtype)
        if told is not None:
            st.error(words.plain(f"{words.backend(manifest.workload)}: {told}"), icon=":material/dangerous:")


def focus(shown: Sequence[Entry]) -> Entry:
    """The run that is looked into, of those in the stack: a choice that the link carries."""
    if len(shown) == 1:
        return shown[0]
    by_backend = {entry.head.workload.backend: entry for entry in shown}
    wanted = link.focus()
    key = "explore:focus"
    if st.session_state.get(key) not in by_backend:
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
