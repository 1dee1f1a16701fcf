"""A chart of the Shapes page: drawn so that a click on a point opens its run, with its picture and its table below."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from core.ui import download, words
from core.ui.shapes_data import Shown, axis_words, link_to_run
from core.ui.shapes_ledger import csv_button

_SHOWN_MAX = 20


def source(found: Shown, what: str) -> tuple[str, ...]:
    """Where a chart's numbers come from, for the picture itself."""
    layer = f"{words.layer(found.sweep.base)}, {axis_words(found.sweep)}; {what}"
    return words.source_lines(found.manifests, layer)


def draw(
    found: Shown, figure: go.Figure, *, name: str, alt: str, table: Callable[[], pd.DataFrame], opens: str = "point"
) -> str | None:
    """The chart, and under it its picture, its table as CSV, and a link to the run of the point that was clicked: its id is
    returned, None where none was. `table` has a column `run`; `opens` is what can be clicked, "" where nothing can."""
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
        csv_button(found, name, table)
        if clicked is None:
            click = f"Click a {opens} to open its run's timeline; drag" if opens else "Drag"
            st.caption(f"{click} over the chart to zoom in, double-click to see all again.")
        else:
            link_to_run(found, clicked)
    return clicked


def show_table(table: pd.DataFrame, columns: dict[str, Any], *, name: str, found: Shown) -> None:
    """The numbers behind a chart; a ticked row opens its run."""
    event: Any = st.dataframe(
        table.drop(columns=["run"]),
        hide_index=True,
        height=35 * (min(len(table), _SHOWN_MAX) + 1) + 3,
        column_config=columns,
        placeholder="–",
        on_select="rerun",
        selection_mode="single-row",
        key=f"shapes:table:{name}:{found.entry.head.id}:{len(table)}",
    )
    if not event.selection.rows:
        st.caption("Tick a row to open its run's timeline.")
    for at in event.selection.rows:
        run = table["run"].iloc[at] if at < len(table) else None
        if run in found.by_run:
            link_to_run(found, str(run))


def _run_of(found: Shown, point: Any) -> str | None:
    custom: Sequence[Any] | Any = point.get("customdata") or ()
    values = custom.values() if isinstance(custom, dict) else [custom] if isinstance(custom, str) else custom
    return next((one for one in values if isinstance(one, str) and one in found.by_run), None)
