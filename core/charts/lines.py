"""What charts over the points of a sweep share: an axis of sizes, a symbol and a colour a backend, a legend above."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence

import plotly.graph_objects as go

from core.charts.layout import base_figure, shown
from core.charts.palette import BACKEND_COLOURS

HEIGHT_PX = 430
_SYMBOLS = ("circle", "square", "diamond", "triangle-up", "triangle-down", "cross", "star", "hexagon", "pentagon")
_HOVER_CHARACTERS = 88
_TICKS_MAX = 16
_TITLE_STANDOFF_PX = 14
#: Sizes or times that span more than this are drawn on a logarithmic axis.
_LOG_FROM = 12.0


def line_figure(*, dark: bool, height_px: int = HEIGHT_PX) -> go.Figure:
    """An empty figure with a legend above and a quiet grid both ways."""
    figure = base_figure(dark=dark)
    figure.update_layout(
        height=height_px,
        legend={
            "orientation": "h",
            "y": 1.02,
            "yanchor": "bottom",
            "x": 0,
            "font": {"size": 15},
            "itemsizing": "constant",
        },
        clickmode="event+select",
        dragmode="zoom",
    )
    grid = figure.layout.xaxis.gridcolor
    # Without a distance of its own the title lies over wide ticks in a picture.
    figure.update_yaxes(gridcolor=grid, automargin=True, title_standoff=_TITLE_STANDOFF_PX)
    return figure


def symbol(name: str) -> str:
    """A backend's marker: the same on every chart."""
    names = list(BACKEND_COLOURS)
    return _SYMBOLS[names.index(name) % len(_SYMBOLS)] if name in names else "hexagram"


def wrapped(text: str) -> str:
    """A long text for a hover, cut into lines."""
    return "<br>".join(map(shown, textwrap.wrap(text, _HOVER_CHARACTERS))) or shown(text)


def size_axis(figure: go.Figure, sizes: Sequence[int], title: str) -> None:
    """The x axis: sizes as numbers, each named where there is room, logarithmic where they span decades."""
    distinct = sorted(set(sizes))
    figure.update_xaxes(title=shown(title), type="log" if spans_decades(distinct) else "linear")
    if 0 < len(distinct) <= _TICKS_MAX:
        figure.update_xaxes(tickvals=_with_room(distinct), ticktext=[f"{size:,}" for size in _with_room(distinct)])


def time_axis(figure: go.Figure, times: Sequence[float], title: str) -> None:
    """The y axis: times from zero on, or logarithmic with ticks at 1, 2 and 5 where they span decades."""
    figure.update_yaxes(title_text=shown(title))
    if not spans_decades(times):
        figure.update_yaxes(rangemode="tozero")
        return
    low, high = math.floor(math.log10(min(times))), math.ceil(math.log10(max(times)))
    ticks = [step * 10.0**power for power in range(low, high + 1) for step in (1, 2, 5)]
    figure.update_yaxes(type="log", tickvals=ticks, ticktext=[f"{tick:,g}" for tick in ticks])


def spans_decades(values: Sequence[float]) -> bool:
    """Whether positive values are so far apart that a linear axis hides the small ones."""
    return bool(values) and min(values) > 0 and max(values) / min(values) > _LOG_FROM


def _with_room(distinct: Sequence[int]) -> list[int]:
    """The sizes to be named: those that are no neighbours too close to read, from the largest down."""
    if spans_decades(distinct):
        kept = [distinct[-1]]
        for size in reversed(distinct[:-1]):
            if kept[-1] / size >= (distinct[-1] / distinct[0]) ** (1 / _TICKS_MAX):
                kept.append(size)
        return kept[::-1]
    step = (distinct[-1] - distinct[0]) / _TICKS_MAX
    kept = [distinct[-1]]
    for size in reversed(distinct[:-1]):
        if kept[-1] - size >= step:
            kept.append(size)
    return kept[::-1]
