"""The compile lottery: for each cold compile of the same code, what its kernel truly takes and what the tuner saw."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from core.charts.layout import base_figure, shown, source_line
from core.charts.palette import colour, look, text_on

#: The tuner's two times for a compile are often alike: their marks stand a little apart.
_APART = 0.16
_LEFT, _RIGHT = (0.0, 0.6), (0.66, 1.0)


@dataclass(frozen=True)
class Draw:
    """One kernel of one compile, ready to plot. `label` names the compile; times in µs, None where unknown."""

    label: str
    kernel: str
    chosen: str
    true_us: float | None
    low_us: float | None
    high_us: float | None
    seen: tuple[tuple[str, float], ...]


def lottery(draws: Sequence[Draw], *, source: Sequence[str], dark: bool) -> go.Figure:
    """A row a compile: on the left the kernel's true time, on the right the time the tuner saw of each candidate."""
    figure = base_figure(dark=dark)
    ordered = list(reversed(draws))
    _add_true_times(figure, ordered)
    _add_tuner(figure, ordered, dark=dark)
    figure.update_layout(
        height=150 + 40 * len(ordered),
        bargap=0.3,
        legend={"orientation": "h", "y": 1.03, "yanchor": "bottom", "x": 1, "xanchor": "right"},
        xaxis={"domain": _LEFT, "title": "true time, µs (profiled)", "rangemode": "tozero"},
        xaxis2={"domain": _RIGHT, "title": "what the tuner saw, µs", "rangemode": "tozero"},
    )
    figure.update_xaxes(gridcolor=look(dark).grid, zeroline=False, ticks="outside", tickcolor=look(dark).grid)
    figure.update_yaxes(
        tickvals=list(range(len(ordered))), ticktext=[shown(draw.label) for draw in ordered], automargin=True
    )
    source_line(figure, source, dark=dark)
    return figure


def _add_true_times(figure: go.Figure, ordered: Sequence[Draw]) -> None:
    known = [(row, draw) for row, draw in enumerate(ordered) if draw.true_us is not None]
    figure.add_trace(
        go.Bar(
            orientation="h",
            y=[row for row, _ in known],
            x=[draw.true_us for _, draw in known],
            marker={"color": [colour("fused", draw.kernel) for _, draw in known]},
            text=[
                f"{draw.true_us:.1f} µs · {shown(draw.chosen.rpartition(', ')[0] or draw.chosen)}" for _, draw in known
            ],
            textposition="auto",
            insidetextfont={"color": [text_on(colour("fused", draw.kernel)) for _, draw in known]},
            insidetextanchor="start",
            textangle=0,
            constraintext="none",
            cliponaxis=False,
            customdata=[(shown(draw.kernel), shown(draw.chosen), draw.low_us, draw.high_us) for _, draw in known],
            hovertemplate="<b>%{customdata[0]}</b><br>true time %{x:.1f} µs (%{customdata[2]:.1f} to %{customdata[3]:.1f})"
            "<br>configuration %{customdata[1]}<extra></extra>",
            showlegend=False,
        )
    )


def _add_tuner(figure: go.Figure, ordered: Sequence[Draw], *, dark: bool) -> None:
    theme = look(dark)
    marks = [(row, config, us, config == draw.chosen) for row, draw in enumerate(ordered) for config, us in draw.seen]
    for was_chosen, name, symbol in ((True, "chosen", "diamond"), (False, "rejected", "circle-open")):
        own = [mark for mark in marks if mark[3] is was_chosen]
        figure.add_trace(
            go.Scatter(
                mode="markers",
                name=name,
                xaxis="x2",
                y=[mark[0] + (_APART if was_chosen else -_APART) for mark in own],
                x=[mark[2] for mark in own],
                marker={"symbol": symbol, "size": 12, "color": theme.mark, "line": {"width": 2, "color": theme.mark}},
                customdata=[shown(mark[1]) for mark in own],
                hovertemplate="the tuner saw %{x:.1f} µs<br>for %{customdata}<extra></extra>",
            )
        )
