"""Explore: pick a workload, see the kernels of a run of it."""

import streamlit as st

from core.analysis.headline import headline
from core.store.manifest import Manifest
from core.store.runfile import RunFileError
from core.store.store import Entry
from core.trace import TraceError
from core.ui import chrome, details, link, pickers, runpanel, session, timeline, views, words
from core.workload import Workload, WorkloadError, from_preset, make

_SHOWN = "explore:shown"
_FIRST_VIEW = "03_simple_mlp"


def main() -> None:
    """The page, top to bottom."""
    chrome.set_up("Explore")
    # Streamlit forgets a page's pickers while the visitor is on another one, and Back brings the old link again.
    new = link.arrived() or not pickers.are_set()
    notice = _follow_link() if new else st.session_state.get("explore:notice")
    with st.sidebar:
        fields = pickers.show()
    workload, problem = _checked(fields)
    entry = _run_to_show(workload)
    for sentence in (notice, problem):
        if sentence:
            st.warning(words.plain(sentence), icon=":material/info:")
    if entry is None:
        st.info("There are no runs here yet. Pick sizes and press Run, or record with: python -m core record --shipped")
        if workload is not None:
            runpanel.show(workload, answered=False, live=False)
        return
    answered = workload == entry.manifest.workload
    _title(entry)
    if workload is not None:
        if not answered:
            _not_run_yet(workload)
        else:
            _other_runs(workload, entry)
        runpanel.show(workload, answered=answered, live=answered and not entry.recorded)
    link.write(fields, run=entry.manifest.id if answered else None)
    _show_run(entry)


def _follow_link() -> str | None:
    """Sets the pickers from the link; what is wrong with it, in a sentence."""
    given = link.read() or link.last()
    wanted = given.get("run")
    named = {name: value for name, value in given.items() if name not in link.EXTRAS}
    if not given:
        named = link.to_run(from_preset(_FIRST_VIEW))
    notice = None
    if wanted:
        entry = session.store().get(wanted)
        if entry is None:
            notice = f"The run {wanted[:80]} is not on this machine; the nearest one is shown."
        else:
            st.session_state["run:wanted"] = wanted
            own = link.to_run(entry.manifest.workload)
            named = named or own
            if any(own.get(name) != value for name, value in named.items()):
                notice = f"The run {wanted[:80]} is of another workload than the link names; the workload is shown."
    step = link.step()
    if step is not None and step != "all" and not (step.isascii() and step.isdecimal() and int(step) >= 1):
        notice = f"The link asks for step {step[:40]!r}; a step is a number from 1 on, or all. Step 2 is shown."
    unknown = pickers.unknown_field(named)
    if unknown is not None:
        notice = f"The link names {unknown[:40]!r}, which this layer and backend do not have; it is left out."
    notice = pickers.load(named) or notice
    st.session_state["explore:notice"] = notice
    return notice


def _checked(fields: dict[str, str]) -> tuple[Workload | None, str | None]:
    try:
        return make(fields), None
    except WorkloadError as error:
        return None, str(error)


def _run_to_show(workload: Workload | None) -> Entry | None:
    """The run asked for by link or by a finished job; else the best answer; else what was on screen; else the nearest."""
    store = session.store()
    asked = st.session_state.get("run:wanted")
    entry = store.get(asked) if asked else None
    if entry is not None and (workload is None or entry.manifest.workload == workload):
        st.session_state[_SHOWN] = entry.manifest.id
        return entry
    shown = store.get(st.session_state.get(_SHOWN, ""))
    if shown is not None and shown.manifest.workload == workload and shown.manifest.answers:
        return shown
    if workload is not None:
        machine = session.machine()
        answers = store.answers(workload, machine.device if machine else None)
        if answers:
            st.session_state[_SHOWN] = answers[0].manifest.id
            return answers[0]
    if shown is not None:
        return shown
    nearest = store.nearest(workload or make({}), limit=1)
    return nearest[0] if nearest else None


def _title(entry: Entry) -> None:
    manifest = entry.manifest
    workload = manifest.workload
    st.header(f"{words.layer(workload)}, {words.backend(workload)}", anchor=False)
    st.markdown(words.fields(workload))
    with st.container(horizontal=True, vertical_alignment="center", key="origin"):
        st.badge(
            words.badge(words.where(manifest, recorded=entry.recorded)),
            icon=":material/save:" if entry.recorded else ":material/sensors:",
            color="blue" if entry.recorded else "green",
            help=words.recorded_help(entry.recorded),
        )
        if manifest.status == "unsettled":
            st.badge(
                "Unsettled", color="orange", help=f"{words.explain('unsettled')} {words.plain(manifest.settled_why)}"
            )
        if manifest.throttled:
            st.badge("Clocks held down", color="orange", help=words.throttle(manifest.window_clocks))
        found = words.spread_of(manifest.step_us)
        if found is not None and found.is_wide:
            st.badge("Wide spread", color="orange", help=words.WIDE)
        st.caption(words.plain(words.origin(manifest)))


def _not_run_yet(workload: Workload) -> None:
    st.warning(
        f"Not run yet: {workload.title}, {workload.steps} steps. Below is still the run named above.",
        icon=":material/pending:",
    )
    nearest = session.store().nearest(workload)
    if nearest:
        st.caption("Nearest runs at hand:")
        with st.container(horizontal=True):
            for entry in nearest:
                manifest = entry.manifest
                st.page_link(
                    "pages/1_Explore.py",
                    label=words.plain(words.nearest(manifest, recorded=entry.recorded)),
                    query_params=link.to_run(manifest.workload, manifest.id),
                    icon=":material/near_me:",
                )


def _other_runs(workload: Workload, entry: Entry) -> None:
    """A picker where several runs answer the same workload."""
    found = [
        one
        for one in session.store().entries()
        if one.manifest.workload == workload and one.manifest.status != "failed"
    ]
    if len(found) < 2:
        return
    ids = [one.manifest.id for one in found]
    names = {one.manifest.id: words.one_line(one.manifest, recorded=one.recorded) for one in found}
    chosen = st.selectbox(
        f"Runs of this workload ({len(ids)})",
        ids,
        index=ids.index(entry.manifest.id) if entry.manifest.id in ids else 0,
        format_func=lambda one: names[one],
        key=f"explore:runs:{workload.key}:{entry.manifest.id}",
    )
    if chosen != entry.manifest.id:
        st.session_state["run:wanted"] = chosen
        st.rerun()


def _show_run(entry: Entry) -> None:
    manifest: Manifest = entry.manifest
    if manifest.failure is not None:
        st.error(words.plain(manifest.failure.sentence))
    try:
        tables = session.tables(entry)
    except (TraceError, RunFileError) as error:
        st.error(words.plain(f"The trace of this run cannot be shown: {error}"))
        tables = None
    if tables is None:
        st.info("This run has no timeline; what else it holds stands below.")
        details.show(entry)
        return
    problem = timeline.step_problem(tables, link.step())
    if problem:
        st.warning(words.plain(problem), icon=":material/info:")
    step = words.spread_of(manifest.step_us)
    on_gpu = manifest.device.kind == "gpu"
    found = headline(tables, step.median if step else None)
    views.headline(manifest, found)
    timeline.show(entry, tables)
    st.subheader("Kernels" if on_gpu else "Operators", anchor="kernels",
                 help=words.explain("kernel" if on_gpu else "operator"))  # fmt: skip
    views.kernels(manifest, tables, on_gpu=on_gpu)
    if manifest.compiles:
        views.compiles(manifest)
        views.code(entry)
    st.subheader("Details", anchor="details")
    details.show(entry)


with chrome.guarded():
    main()
