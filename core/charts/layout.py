"""The look every chart starts from: fonts readable from the back of a room, quiet grid, transparent ground."""

from __future__ import annotations

import html
from collections.abc import Sequence

import plotly.graph_objects as go

from core.charts.palette import look

# No web font: a downloaded picture is drawn without it, and its texts would not fit the room measured for them.
FONT = "Helvetica, Arial, sans-serif"
#: A line of the source's text beyond the two that there is always room for.
_LINE_PX = 16


def shown(text: object) -> str:
    """Any text for a chart as it stands: Plotly reads a subset of HTML, and kernel names hold angle brackets."""
    return html.escape(" ".join(str(text).splitlines()), quote=False)


def base_figure(*, dark: bool) -> go.Figure:
    """An empty figure with the common look."""
    theme = look(dark)
    figure = go.Figure()
    figure.update_layout(
        template="none",
        font={"family": FONT, "size": 15, "color": theme.text},
        paper_bgcolor=theme.ground,  # not transparent: a downloaded picture must be readable wherever it is pasted
        plot_bgcolor=theme.ground,
        margin={"l": 10, "r": 16, "t": 12, "b": 52},
        hoverlabel={"font": {"family": FONT, "size": 14}, "align": "left", "namelength": -1},
        hovermode="closest",
        modebar={"bgcolor": "rgba(0,0,0,0)", "color": theme.faint, "activecolor": theme.text},
    )
    figure.update_xaxes(gridcolor=theme.grid, zeroline=False, ticks="outside", tickcolor=theme.grid, automargin=True)
    figure.update_yaxes(gridcolor="rgba(0,0,0,0)", zeroline=False, ticks="", ticklabelstandoff=8)
    return figure


def source_line(figure: go.Figure, source: Sequence[str], *, dark: bool) -> None:
    """Quiet lines under a chart that say where its numbers come from: they stay in a picture that leaves the page."""
    figure.add_annotation(
        text="<br>".join(map(shown, source)),
        xref="paper",
        yref="paper",
        x=1,  # the line may be longer than the plot is wide: on its left there is room below the labels
        y=0,
        yshift=-70,
        xanchor="right",
        yanchor="top",
        showarrow=False,
        align="right",
        font={"size": 12, "color": look(dark).faint},
    )
    more_px = _LINE_PX * max(0, len(source) - 2)
    figure.update_layout(margin={"b": 114 + more_px}, height=(figure.layout.height or 400) + 62 + more_px)
