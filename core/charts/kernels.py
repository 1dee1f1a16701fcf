"""Time of each kernel of a step: median as a bar, the middle half as a whisker, all of the range on hover."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from core.charts.layout import base_figure, shown, source_line
from core.charts.palette import colour, look, shorten


def kernel_times(table: pd.DataFrame, *, source: Sequence[str], dark: bool, noun: str = "launch") -> go.Figure:
    """A bar a row of `analysis.kernels.kernel_table` (or of the operator table of a CPU run), in their order.

    Columns used: name, family, median_us, min_us, max_us, p25_us, p75_us, n, launches_per_step, and across where there
    is one. `source` says where the numbers come from, `noun` what is timed: a "launch" of a kernel, or a "call" of an operator.
    """
    figure = base_figure(dark=dark)
    rows = table.iloc[::-1]  # Plotly stacks categories from the bottom
    labels = [_name(row) for row in rows.itertuples()]
    ends = np.maximum(rows["median_us"], rows["p75_us"])
    positions = list(range(len(rows)))
    # A whisker far beyond every median would leave the bars no room.
    widest = min(float(ends.max()), 4 * float(rows["median_us"].max())) if len(rows) else 1.0
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
            customdata=rows[["name", "n", "min_us", "max_us"]].assign(name=[shown(name) for name in rows["name"]]),
            hovertemplate="<b>%{customdata[0]}</b><br>median %{x:.2f} µs<br>%{customdata[2]:.2f} to %{customdata[3]:.2f} µs"
            "<br>n %{customdata[1]}, profiled<extra></extra>",
        )
    )
    figure.add_trace(
        go.Scatter(
            mode="text",
            y=positions,
            x=np.minimum(ends, widest),
            text=[f"  {_label(row)}" for row in rows.itertuples()],
            textposition="middle right",
            hoverinfo="skip",
            cliponaxis=False,
        )
    )
    figure.update_layout(height=96 + 48 * len(rows), bargap=0.34, showlegend=False)
    figure.update_xaxes(title=f"time of one {noun}, µs (median; whisker: middle half)", range=[0, widest * 1.3])
    figure.update_yaxes(tickvals=positions, ticktext=labels, automargin=True)
    source_line(figure, source, dark=dark)
    return figure


def _name(row: Any) -> str:
    """The kernel's name; for a compiled one, below it, how far apart its cold compiles came out."""
    across = getattr(row, "across", None)
    return shown(shorten(row.name, 44)) + (
        f"<br><span style='font-size: 12px'>{shown(across)}</span>" if isinstance(across, str) else ""
    )


def _label(row: Any) -> str:
    """Median, and launches a step where there are several."""
    per_step = row.launches_per_step
    times = f" × {per_step:g}" if per_step == per_step and per_step != 1 else ""
    return f"{row.median_us:.{1 if row.median_us >= 100 else 2}f} µs{times}"
