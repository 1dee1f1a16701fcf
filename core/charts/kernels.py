"""Time of each kernel of a step: median as a bar, the middle half as a whisker, all of the range on hover."""

from __future__ import annotations

import pandas as pd
import plotly.graph_objects as go

from core.charts.layout import base_figure
from core.charts.palette import colour, look, shorten


def kernel_times(table: pd.DataFrame, *, dark: bool, noun: str = "launch") -> go.Figure:
    """A bar a row of `analysis.kernels.kernel_table` (or of the operator table of a CPU run), in their order.

    Columns used: name, family, median_us, min_us, max_us, p25_us, p75_us, n, launches_per_step, and across where there
    is one. `noun` is what is timed: a "launch" of a kernel, or a "call" of an operator.
    """
    figure = base_figure(dark=dark)
    rows = table.iloc[::-1]  # Plotly stacks categories from the bottom
    labels = [shorten(name, 46) for name in rows["name"]]
    positions = list(range(len(rows)))
    figure.add_trace(
        go.Bar(
            orientation="h",
            y=positions,
            x=rows["median_us"],
            marker={
                "color": [colour(f, n) for f, n in zip(rows["family"], rows["name"], strict=True)],
                "line_width": 0,
            },
            error_x={
                "type": "data",
                "symmetric": False,
                "array": rows["p75_us"] - rows["median_us"],
                "arrayminus": rows["median_us"] - rows["p25_us"],
                "color": look(dark).faint,
                "thickness": 1.6,
                "width": 5,
            },
            text=[_label(row) for row in rows.itertuples()],
            textposition="auto",
            insidetextanchor="start",
            textangle=0,
            constraintext="none",
            customdata=rows[["name", "n", "min_us", "max_us"]],
            hovertemplate="<b>%{customdata[0]}</b><br>median %{x:.2f} µs<br>%{customdata[2]:.2f} to %{customdata[3]:.2f} µs"
            "<br>n %{customdata[1]}, profiled<extra></extra>",
        )
    )
    figure.update_layout(height=96 + 44 * len(rows), bargap=0.28, showlegend=False)
    figure.update_xaxes(title=f"time of one {noun}, µs (median; whisker: middle half)", rangemode="tozero")
    figure.update_yaxes(tickvals=positions, ticktext=labels, automargin=True)
    return figure


def _label(row: object) -> str:
    """Median, launches a step, and for a compiled kernel how far apart its cold compiles came out."""
    per_step = getattr(row, "launches_per_step", float("nan"))
    times = f" × {per_step:g}" if per_step == per_step and per_step != 1 else ""
    across = getattr(row, "across", None)
    compiles = f" (this compile; {across})" if isinstance(across, str) else ""
    return f"{getattr(row, 'median_us', float('nan')):.1f} µs{times}{compiles}"
