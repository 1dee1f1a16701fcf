"""One run in full: headline, timeline, kernels, what the step waits for, operators, compiles, code and details."""

from __future__ import annotations

import streamlit as st

from core.analysis.headline import headline
from core.store.entry import Entry
from core.store.runfile import RunFileError
from core.trace import TraceError
from core.ui import cost, details, link, operators, session, timeline, views, words


def show(entry: Entry) -> None:
    """Draws everything there is to know of a run."""
    _others(entry)
    manifest = entry.manifest
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
    step = entry.head.step_us
    found = headline(tables, step.median if step else None)
    views.headline(manifest, found)
    timeline.show(entry, tables)
    views.kernels(entry, tables, on_gpu=manifest.device.kind == "gpu")
    cost.show(manifest, tables, found)
    operators.show(entry, tables)
    if manifest.compiles:
        views.compiles(manifest)
        views.code(entry)
    details.show(entry, busy_us=found.gpu_busy_us)


def _others(entry: Entry) -> None:
    """A picker where several runs answer the same workload."""
    found = [one for one in session.store().of(entry.head.workload) if one.head.status != "failed"]
    if len(found) < 2:
        return
    ids = [one.head.id for one in found]
    names = words.distinct({one.head.id: words.one_line(one) for one in found})
    chosen = st.selectbox(
        f"Runs of this workload ({len(ids)})",
        ids,
        index=ids.index(entry.head.id) if entry.head.id in ids else 0,
        format_func=lambda one: names[one],
        key=f"explore:runs:{entry.head.workload.key}:{entry.head.id}",
        help="The same layer, sizes, backend and steps, run more than once: on other machines or at other times.",
    )
    if chosen != entry.head.id:
        session.want(entry.head.workload, chosen)
        st.rerun()
