"""A chart of the Shapes page: drawn so that a click on a point opens its run, with its picture and its table below."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from core.ui import download, words
from core.ui.shapes_data import Shown, axis_words, fixed_sizes, has_repeats, link_to_run
from core.ui.shapes_ledger import call_column, csv_button
from core.workload import PASSES, flag_words, layer_of

_SHOWN_MAX = 20


def source(found: Shown, what: str) -> tuple[str, ...]:
    """Where a chart's numbers come from, for three lines in the picture itself: what ran; what is drawn, how it was taken and
    when; device and versions."""
    sweep = found.sweep
    titles = {size.name: size.title.lower() for size in layer_of(sweep.base).sizes}
    fixed = [f"{titles[name]} {value:,}" for name, value in fixed_sizes(sweep).items()]
    same = ", ".join((*fixed, *flag_words(sweep.base), sweep.base.dtype, PASSES[sweep.base.passes].lower()))
    return f"{words.layer(sweep.base)} over {axis_words(sweep)}; {same}", *words.source_lines(found.measured, what)


def n_words(counts: Iterable[int]) -> str:
    """ "n 10", or "n 8 to 200" where they differ."""
    known = sorted(set(counts))
    return f"n {known[0]:,}" + (f" to {known[-1]:,}" if len(known) > 1 else "") if known else "n unknown"


def draw(
    found: Shown,
    figure: go.Figure,
    *,
    name: str,
    alt: str,
    table: Callable[[], pd.DataFrame],
    opens: str = "point",
    note: str = "",
) -> str | None:
    """The chart, and under it its picture, its table as CSV, and a link to the run of the point that was clicked: its id is
    returned, None where none was. `table` has a column `run`; `opens` is what can be clicked, "" where nothing can, and `note`
    what a reader of the chart must know."""
    sweep_id = found.entry.head.id
    # A zoomed chart stays zoomed while a running sweep adds its points.
    figure.update_layout(uirevision=f"{sweep_id}:{name}", dragmode="zoom", clickmode="event+select")
    holder = f"shapes-{name}-holder"
    with st.container(key=holder):
        event: Any = st.plotly_chart(
            figure,
            theme=None,
            key=f"shapes:chart:{name}:{sweep_id}",
            on_select="rerun",
            selection_mode="points",
            config=download.config(f"fusionscope-{name}"),
            alt=alt,
        )
    clicked = next((run for point in event.selection.points if (run := _run_of(found, point)) is not None), None)
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        download.picture(holder, name)
        csv_button(found, name, lambda: _with_calls(table(), found))
        if clicked is None:
            click = f"Click a {opens} for a link to its run's timeline; drag" if opens else "Drag"
            st.caption(f"{click} over the chart to zoom in, double-click to see all again.")
        else:
            link_to_run(found, clicked)
    if note:
        st.caption(note)
    return clicked


def show_table(table: pd.DataFrame, columns: dict[str, Any], *, name: str, found: Shown) -> None:
    """The numbers behind a chart; a ticked row opens its run."""
    table = _with_calls(table, found)
    event: Any = st.dataframe(
        table.drop(columns=["run"]),
        hide_index=True,
        height=35 * (min(len(table), _SHOWN_MAX) + 1) + 3,
        column_config={"call": call_column()} | columns,
        placeholder="–",
        on_select="rerun",
        selection_mode="single-row",
        key=f"shapes:table:{name}:{found.entry.head.id}:{len(table)}",
    )
    if not event.selection.rows:
        st.caption("Tick a row for a link to its run's timeline.")
    for at in event.selection.rows:
        run = table["run"].iloc[at] if at < len(table) else None
        if run in found.by_run:
            link_to_run(found, str(run))


def _with_calls(table: pd.DataFrame, found: Shown) -> pd.DataFrame:
    """Rows of a list that comes to a size twice are told apart by the number of their call."""
    if "sizes" not in table or "call" in table or not has_repeats(found.sweep):
        return table
    calls = [found.by_run[run][2].index + 1 if run in found.by_run else None for run in table["run"]]
    told = table.copy()
    told.insert(told.columns.get_loc("sizes"), "call", pd.array(calls, dtype="Int64"))
    return told


def _run_of(found: Shown, point: Any) -> str | None:
    custom: Sequence[Any] | Any = point.get("customdata") or ()
    values = custom.values() if isinstance(custom, dict) else [custom] if isinstance(custom, str) else custom
    return next((one for one in values if isinstance(one, str) and one in found.by_run), None)
