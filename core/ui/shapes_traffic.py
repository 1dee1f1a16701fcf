"""A visitor's traffic on the page: what each backend's seconds are made of."""

from __future__ import annotations

import streamlit as st

from core.analysis.traffic import bills
from core.charts.traffic import traffic_chart
from core.glossary import explain
from core.ui import chrome, shapes_tables
from core.ui.shapes_chart import draw, n_words, show_table, source
from core.ui.shapes_data import Shown


def costs(found: Shown) -> None:
    """The bars, and the table behind them."""
    st.subheader("What this traffic costs", anchor="costs", help=f"{explain('traffic')} {explain('break-even')}")
    rows = bills(found.series, found.sweep.axes, len(found.sweep.points))
    n = n_words(row.steps for row in rows if row.steps)
    how = f"computed from first calls (n 1) and median steps, unprofiled ({n} or more a row); whiskers: the steps' quartiles"
    figure = traffic_chart(rows, source=source(found, how), dark=chrome.is_dark())
    first_run = {one.name: one.points[0].run_id for one in found.series if one.points}
    table, columns = shapes_tables.bills(rows, first_run)
    draw(
        found,
        figure,
        name="traffic",
        alt="Seconds of each backend: compiling and working",
        table=lambda: table,
        opens="",
    )
    show_table(table, columns, name="traffic", found=found)
