"""The timeline on a page: step picker, zoom, and clicks that light a kernel's launch and operator up."""

from __future__ import annotations

from html import escape
from pathlib import Path

import numpy as np
import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.analysis.busy import Idle, gaps, idle, unprofiled_idle_us
from core.analysis.chain import Chain, chain
from core.analysis.headline import step_numbers, step_window_ns
from core.analysis.kernels import launch_notes
from core.analysis.lod import Spans, query, spans
from core.charts.palette import look
from core.charts.timeline import Window, axis_unit, timeline
from core.glossary import explain
from core.store.entry import Entry
from core.store.runfile import RunFileError
from core.trace import Tables, TraceError, event_args
from core.ui import chrome, download, legend, link, session, tree, words

_BRIDGE = """
export default function ({ setTriggerValue, data }) {
  let chart = null, timer = null, ended = false;
  const attach = () => {
    if (ended) return;
    const found = document.querySelector('.st-key-' + data.holder + ' .js-plotly-plot');
    if (found && found.on && found !== chart) {
      chart = found;
      chart.on('plotly_relayout', (change) => {
        let range = null;
        if ('xaxis.range[0]' in change) range = [change['xaxis.range[0]'], change['xaxis.range[1]']];
        else if (Array.isArray(change['xaxis.range'])) range = change['xaxis.range'];
        else if (change['xaxis.autorange']) range = 'all';
        if (range === null) return;
        clearTimeout(timer);
        timer = setTimeout(() => setTriggerValue('range', range), 120);
      });
    }
    setTimeout(attach, 250);
  };
  attach();
  return () => { ended = true; clearTimeout(timer); };
}
"""
# Plotly tells Streamlit of clicks, not of zooms; this reads the zoom off the chart, so that detail can follow it.
_bridge = st.components.v2.component("fusionscope_zoom", js=_BRIDGE)
_SMALLEST_NS = 200
ALL_STEPS = "All steps"
_DEFAULT_STEP = "2"


@st.cache_resource(max_entries=64, show_spinner=False)
def _spans(path: Path, stamp: str, _tables: Tables) -> Spans:
    return spans(_tables, gpu_annotations=False)


@st.cache_resource(max_entries=64, show_spinner=False)
def _gaps(path: Path, stamp: str, _tables: Tables, _step_us: float | None) -> tuple[pd.DataFrame, float | None]:
    """The gaps of a trace, and how long the GPU waits in a step without the profiler."""
    return gaps(_tables), unprofiled_idle_us(_tables, _step_us)


def step_problem(tables: Tables, wanted: str | None) -> str | None:
    """A sentence for a link's step that the run does not have."""
    count = len(step_numbers(tables))
    if wanted and wanted.isascii() and wanted.isdecimal() and int(wanted) > count:
        return f"This run has no step {wanted[:40]}: it has {count}. Step {index_of_step(wanted, count) + 1} is shown."
    return None


def index_of_step(wanted: str | None, count: int) -> int:
    """Which of `count` profiled steps, from 0 on, a link's `step` means (counted from 1): the second where it means none of
    them, for the first carries what profiling itself costs at its start; the first where it is alone."""
    if wanted and wanted.isascii() and wanted.isdecimal() and len(wanted) < 10 and 1 <= int(wanted) <= count:
        return int(wanted) - 1
    return max(0, min(1, count - 1))


def selected_step(tables: Tables, wanted: str | None) -> int | None:
    """The profiler's number of the step that a link's `step` means, None for all of them."""
    numbers = step_numbers(tables)
    return None if wanted == "all" or not numbers else numbers[index_of_step(wanted, len(numbers))]


@st.fragment
def show(entry: Entry, tables: Tables) -> None:
    """Draws the timeline of a run with its controls, and the dispatch tree of the step it shows."""
    st.subheader("Timeline", help=explain("lane"), anchor="timeline")
    run = entry.manifest.id
    found = _spans(entry.path, entry.stamp, tables)
    on_gpu = "gpu" in found.lane_kinds
    left, right = st.columns([1, 4], vertical_alignment="bottom")
    step = _step_picker(run, tables, left)
    whole = Window(*step_window_ns(tables, step))
    view_key = f"timeline:view:{run}:{step}"
    window = _view(view_key, whole)
    with right:
        _zoom_buttons(view_key, whole, window)
    picked_key = f"timeline:picked:{run}:{step}"
    picked = st.session_state.get(picked_key)
    lit = chain(tables, picked) if isinstance(picked, int) and picked < tables.events.num_rows else None
    view = query(found, window.start_ns, window.end_ns)
    notes = launch_notes(tables, found.row[view.rows])
    waits = _waits(entry, tables, step) if on_gpu else None
    holder, chart_key = "timeline-holder", f"timeline-{run}-{step}"
    with st.container(key=holder):
        st.plotly_chart(
            timeline(
                found,
                view,
                window,
                notes=notes,
                chain=lit,
                gaps=waits.suspects if waits else None,
                gap_note=_gap_note(waits) if waits else "",
                source=words.source_lines(
                    [entry.manifest], f"{words.title(entry.head.workload)}, {_what(tables, step)} as profiled"
                ),
                dark=chrome.is_dark(),
            ),
            key=chart_key,
            theme=None,
            on_select=lambda: _clicked(picked_key, chart_key),
            selection_mode="points",
            config=download.config("fusionscope-timeline"),
            alt="Timeline of CPU operators, launch calls and GPU kernels",
        )
    _bridge(
        key="timeline-bridge",
        data={"holder": holder},
        on_range_change=lambda: _zoomed(view_key, whole),
    )
    download.picture(holder, "timeline")
    legend.show({found.families[code] for code in np.unique(found.family_code)})
    if waits is not None:
        _say_gaps(waits, step)
    if lit is None or picked is None:
        st.caption(
            "Drag over the chart to zoom in, double-click to see all again. Click a bar to see what belongs to it: "
            + (
                "a kernel's launch and operator, or what an operator launched."
                if on_gpu
                else "what else the profiler noted."
            )
        )
    else:
        _say_chain(entry, tables, lit, picked)
    of_step = step if step is not None else selected_step(tables, None)
    if of_step is not None:
        number = step_numbers(tables).index(of_step) + 1
        st.subheader(f"Dispatch of step {number}", help=explain("dispatch"), anchor="dispatch")
        tree.show(tables, of_step, on_gpu=on_gpu)


def _what(tables: Tables, step: int | None) -> str:
    return (
        "all steps" if step is None else f"step {step_numbers(tables).index(step) + 1} of {len(step_numbers(tables))}"
    )


def _step_picker(run: str, tables: Tables, column: DeltaGenerator) -> int | None:
    numbers = step_numbers(tables)
    if not numbers:
        return None
    options = [ALL_STEPS, *(str(index + 1) for index in range(len(numbers)))]
    key = f"timeline:step:{run}"
    if link.view_arrived("step") or key not in st.session_state:
        first = selected_step(tables, link.step())
        st.session_state[key] = ALL_STEPS if first is None else str(numbers.index(first) + 1)
    column.selectbox(
        f"Step (of {len(numbers)})",
        options,
        format_func=lambda one: one if one == ALL_STEPS else f"{one} · ProfilerStep#{numbers[int(one) - 1]}",
        key=key,
        help=explain("step") + " All of them held the same kernels, or the page says otherwise.",
    )
    chosen = st.session_state[key]
    wanted = "all" if chosen == ALL_STEPS else chosen
    if wanted != _DEFAULT_STEP or link.step() is not None:
        link.write_step(wanted)
    return selected_step(tables, wanted)


def _view(key: str, whole: Window) -> Window:
    start, end = st.session_state.get(key, (whole.start_ns, whole.end_ns))
    return Window(start, end, whole.origin_ns)


def _set_view(key: str, whole: Window, start: float, end: float) -> None:
    width = max(end - start, _SMALLEST_NS)
    margin = (whole.end_ns - whole.start_ns) // 2
    low = max(start, whole.start_ns - margin)
    st.session_state[key] = (int(low), int(min(low + width, whole.end_ns + margin)))


def _zoom_buttons(key: str, whole: Window, window: Window) -> None:
    width, middle = window.end_ns - window.start_ns, (window.start_ns + window.end_ns) / 2
    moves = (
        ("Zoom in", ":material/zoom_in:", middle - width / 4, middle + width / 4),
        ("Zoom out", ":material/zoom_out:", middle - width, middle + width),
        ("Earlier", ":material/chevron_left:", window.start_ns - width / 2, window.end_ns - width / 2),
        ("Later", ":material/chevron_right:", window.start_ns + width / 2, window.end_ns + width / 2),
        ("Whole step", ":material/fit_width:", whole.start_ns, whole.end_ns),
    )
    with st.container(horizontal=True, gap="small"):
        for label, icon, start, end in moves:
            st.button(
                label,
                icon=icon,
                key=f"timeline:{label}",
                type="tertiary",
                on_click=_set_view,
                args=(key, whole, start, end),
            )


def _zoomed(key: str, whole: Window) -> None:
    found = st.session_state.get("timeline-bridge")
    taken = getattr(found, "range", None) if found is not None else None
    if taken == "all":
        st.session_state.pop(key, None)
    elif isinstance(taken, list) and len(taken) == 2:
        _, scale = axis_unit(_view(key, whole))
        start, end = sorted(float(edge) * scale + whole.origin_ns for edge in taken)
        _set_view(key, whole, start, end)


def _clicked(picked_key: str, chart_key: str) -> None:
    points = st.session_state[chart_key]["selection"]["points"]
    # A hatched gap is no event; its customdata is shorter than that of a bar.
    rows = [point["customdata"][0] for point in points if len(point.get("customdata") or ()) > 2]
    st.session_state[picked_key] = int(rows[0]) if rows else None


def _waits(entry: Entry, tables: Tables, step: int | None) -> Idle:
    step_us = words.spread_of(entry.manifest.step_us)
    found, unprofiled_us = _gaps(entry.path, entry.stamp, tables, step_us.median if step_us else None)
    return idle(found, unprofiled_us, step=step)


def _gap_note(waits: Idle) -> str:
    own = "it may be the profiler's own, in part or whole:<br>"
    if waits.unprofiled_us is None:
        return f"{own}how long the GPU idles without it is unknown"
    return f"{own}without it the whole step idles {words.time(waits.unprofiled_us)}"


def _say_gaps(waits: Idle, step: int | None) -> None:
    """How long the GPU waited between its pieces of work, and before which."""
    where = "in all steps and between them" if step is None else "within the GPU work of this step"
    if waits.gaps.empty:
        st.caption(f"The GPU never waited 1 µs or longer {where}.")
        return
    theme = look(chrome.is_dark())
    unprofiled = f"{words.time(waits.unprofiled_us)} a step (unprofiled step less busy time, medians)"
    hatched = "Hatched: gaps that may be the profiler's own, in part or whole"
    if waits.suspects.empty:
        told = f"Without the profiler the GPU waits {unprofiled}; here no step waits for longer between its work."
    elif waits.unprofiled_us is None:
        told = f"{hatched}: how long the GPU waits without it is unknown."
    elif step is None:
        told = f"{hatched}, in steps that wait for longer than without it: {unprofiled}."
    else:
        told = f"{hatched}: {words.time(waits.total_us)} in this step, where without it the GPU waits {unprofiled}."
    hatch = (
        f"<span style='display:inline-block; width:1.6em; height:.8em; margin-right:.4em; border-radius:2px; background:"
        f"repeating-linear-gradient(135deg, {theme.faint} 0 1px, transparent 1px 5px)'></span>"
    )
    st.html(
        f"<div title='{escape(explain('gap'), quote=True)}' style='font-size:.95rem; color:{theme.text}; cursor:help'>"
        f"{'' if waits.suspects.empty else hatch}{escape(told)}</div>"
    )
    total, longest, n = words.time(waits.total_us), words.time(waits.longest_us), len(waits.gaps)
    counted = f"{n} gap{'' if n == 1 else 's'} of 1 µs or more"
    with st.expander(f"The GPU waited {total} {where}: {counted}, the longest {longest} (profiled)"):
        st.dataframe(
            waits.gaps[["start_us", "dur_us", "after", "before", "device"]],
            hide_index=True,
            key="gaps-table",
            column_config={
                "start_us": st.column_config.NumberColumn(
                    "Start, µs of the profile", format="%.2f", help="Counted from the first event of the trace."
                ),
                "dur_us": st.column_config.NumberColumn("Gap, µs", format="%.2f", help=explain("gap")),
                "after": st.column_config.TextColumn("After", help=f"The GPU work before it. {explain('kernel')}"),
                "before": st.column_config.TextColumn(
                    "Before", help=f"The GPU work that ended it. {explain('kernel')}"
                ),
                "device": st.column_config.NumberColumn("GPU", help="The GPU's number, from 0 on."),
            },
        )


def _say_chain(entry: Entry, tables: Tables, lit: Chain, picked: int) -> None:
    events = tables.events

    def told(row: int) -> str:
        duration = events["dur_ns"][row].as_py()
        length = words.time(None if duration is None else duration / 1e3)
        return f"{words.code(events['name'][row].as_py()[:160])} ({length})"

    parts = []
    if lit.operator is not None:
        parts.append(f"operator {told(lit.operator)}")
    if lit.launches:
        more = f" and {len(lit.launches) - 1} more" if len(lit.launches) > 1 else ""
        parts.append(f"launched by {told(lit.launches[0])}{more}")
    if lit.work:
        more = f" and {len(lit.work) - 1} more" if len(lit.work) > 1 else ""
        parts.append(f"ran {told(lit.work[0])}{more}")
    if not lit.work:
        parts.append("launched nothing on the GPU")
    st.markdown(" → ".join(parts))
    with st.expander("All the profiler noted about this event"):
        try:
            trace = session.trace_bytes(entry)
            st.json(event_args(trace or b"", int(events["source"][picked].as_py())))
        except (TraceError, RunFileError) as error:
            st.write(words.plain(f"Its details are unknown: {error}"))
