"""The timeline on a page: step picker, zoom, and clicks that light a kernel's launch and operator up."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.analysis.busy import gaps
from core.analysis.chain import Chain, chain
from core.analysis.headline import step_numbers, step_window_ns
from core.analysis.kernels import launch_notes
from core.analysis.lod import Spans, query, spans
from core.charts.timeline import Window, axis_unit, timeline
from core.glossary import explain
from core.store.runfile import RunFileError
from core.store.store import Entry
from core.trace import Tables, TraceError, event_args
from core.ui import chrome, legend, link, session, tree, words

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


def step_problem(tables: Tables, wanted: str | None) -> str | None:
    """A sentence for a link's step that the run does not have."""
    count = len(step_numbers(tables))
    if wanted and wanted.isascii() and wanted.isdecimal() and int(wanted) > count:
        return f"This run has no step {wanted[:40]}: it has {count}. Step 2 is shown."
    return None


def selected_step(tables: Tables, wanted: str | None) -> int | None:
    """The profiler's number of the step that a link's `step` (counted from 1, or "all") means; the second where it
    means none: the first carries what profiling itself costs at its start."""
    numbers = step_numbers(tables)
    if wanted == "all" or not numbers:
        return None
    if wanted and wanted.isascii() and wanted.isdecimal() and 1 <= int(wanted) <= len(numbers):
        return numbers[int(wanted) - 1]
    return numbers[min(1, len(numbers) - 1)]


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
    holder, chart_key = "timeline-holder", f"timeline-{run}-{step}"
    with st.container(key=holder):
        st.plotly_chart(
            timeline(found, view, window, notes=notes, chain=lit, dark=chrome.is_dark()),
            key=chart_key,
            theme=None,
            on_select=lambda: _clicked(picked_key, chart_key),
            selection_mode="points",
            config={"displayModeBar": False, "showTips": False},
            alt="Timeline of CPU operators, launch calls and GPU kernels",
        )
    _bridge(
        key="timeline-bridge",
        data={"holder": holder},
        on_range_change=lambda: _zoomed(view_key, whole),
    )
    legend.show({found.families[code] for code in np.unique(found.family_code)})
    if on_gpu:
        _say_gaps(tables, step)
    if lit is None or picked is None:
        st.caption(
            "Drag over the chart to zoom in, double-click to see all again. Click a bar to see what belongs to it: "
            "a kernel's launch and operator, or what an operator launched."
        )
    else:
        _say_chain(entry, tables, lit, picked)
    of_step = step if step is not None else selected_step(tables, None)
    if of_step is not None:
        number = step_numbers(tables).index(of_step) + 1
        st.subheader(f"Dispatch of step {number}", help=explain("dispatch"), anchor="dispatch")
        tree.show(tables, of_step, on_gpu=on_gpu)


def _step_picker(run: str, tables: Tables, column: DeltaGenerator) -> int | None:
    numbers = step_numbers(tables)
    if not numbers:
        return None
    options = [ALL_STEPS, *(str(index + 1) for index in range(len(numbers)))]
    key = f"timeline:step:{run}"
    if key not in st.session_state:
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
    rows = [point["customdata"][0] for point in points if isinstance(point.get("customdata"), list)]
    st.session_state[picked_key] = int(rows[0]) if rows else None


def _say_gaps(tables: Tables, step: int | None) -> None:
    """How long the GPU waited between its pieces of work, and before which."""
    devices = sorted(set(tables.events["device"].drop_null().to_pylist()))
    found = pd.concat([gaps(tables, device, step=step).assign(device=device) for device in devices])
    where = "between the steps' GPU work" if step is None else "within the GPU work of this step"
    if found.empty:
        st.caption(f"The GPU never waited 1 µs or longer {where}.")
        return
    st.caption(
        "Under the profiler launches take longer than without it, so gaps in this picture may be the profiler's own: "
        "compare the unprofiled step above."
    )
    total, longest = words.time(found["dur_us"].sum()), words.time(found["dur_us"].max())
    title = f"The GPU waited {total} {where}: {len(found)} gaps of 1 µs or more, the longest {longest} (profiled)"
    with st.expander(title):
        st.dataframe(
            found,
            hide_index=True,
            key="gaps-table",
            column_config={
                "start_us": st.column_config.NumberColumn("Start, µs of the profile", format="%.2f"),
                "dur_us": st.column_config.NumberColumn("Gap, µs", format="%.2f", help=explain("gap")),
                "after": st.column_config.TextColumn("After", help=explain("kernel")),
                "before": st.column_config.TextColumn("Before", help=explain("kernel")),
                "device": st.column_config.NumberColumn("GPU"),
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
