"""Steps of several runs, one above the other on one time axis: a lane a run, a colour a role."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd
import plotly.graph_objects as go

from core.charts.layout import base_figure, shown, source_line
from core.charts.palette import look, role_colours, shorten, text_on
from core.roles import Role

LANE_PX = 74
_PLOT_PX = 700
_CHARACTER_PX = 7.5


@dataclass(frozen=True)
class Lane:
    """One run, ready to plot: its titles, and its step as `analysis.stack.one_step` gives it. `total` stands at its end."""

    title: str
    note: str
    total: str
    step: pd.DataFrame


def stack(lanes: Sequence[Lane], roles: Sequence[Role], *, axis: str, source: Sequence[str], dark: bool) -> go.Figure:
    """A bar a piece of work, coloured by role; `axis` is the title of the time axis in µs, `source` where it comes from."""
    figure = base_figure(dark=dark)
    colours = role_colours(roles)
    end_us = max(
        (float((lane.step["start_us"] + lane.step["dur_us"]).max()) for lane in lanes if len(lane.step)), default=1.0
    )
    for role in roles:
        _add_role(figure, lanes, role, colours[role.name], end_us)
    figure.add_trace(
        go.Scatter(
            mode="text",
            x=[float((lane.step["start_us"] + lane.step["dur_us"]).max()) if len(lane.step) else 0.0 for lane in lanes],
            y=list(range(len(lanes))),
            text=[f"  {lane.total}" for lane in lanes],
            textposition="middle right",
            textfont={"size": 15, "color": look(dark).text},
            hoverinfo="skip",
            showlegend=False,
            cliponaxis=False,
        )
    )
    figure.update_layout(
        height=150 + LANE_PX * len(lanes),
        barmode="overlay",
        bargap=0.3,
        legend={
            "orientation": "h",
            "y": 1.02,
            "yanchor": "bottom",
            "x": 0,
            "traceorder": "normal",
            "font": {"size": 15},
        },
        dragmode="zoom",
        clickmode="event",
    )
    figure.update_xaxes(title=axis, range=[-0.005 * end_us, end_us * 1.22])
    figure.update_yaxes(
        tickvals=list(range(len(lanes))),
        ticktext=[f"<b>{shown(lane.title)}</b><br><span style='font-size:13px'>{lane.note}</span>" for lane in lanes],
        range=[len(lanes) - 0.45, -0.55],
        fixedrange=True,
        automargin=True,
        tickfont={"size": 16},
    )
    source_line(figure, source, dark=dark)
    return figure


def _add_role(figure: go.Figure, lanes: Sequence[Lane], role: Role, tint: str, end_us: float) -> None:
    rows: list[tuple[int, pd.Series]] = []
    for index, lane in enumerate(lanes):
        rows += [(index, row) for _, row in lane.step[lane.step["role"] == role.name].iterrows()]
    if not rows:
        return
    figure.add_trace(
        go.Bar(
            orientation="h",
            name=role.title,
            base=[row["start_us"] for _, row in rows],
            x=[row["dur_us"] for _, row in rows],
            y=[index for index, _ in rows],
            width=0.62,
            marker={"color": tint, "line": {"width": 1, "color": "rgba(0,0,0,0.35)"}},
            text=[_text(role, row["dur_us"], end_us) for _, row in rows],
            textposition="inside",
            insidetextanchor="middle",
            textangle=0,
            constraintext="none",
            textfont={"size": 14, "color": text_on(tint)},
            customdata=[
                (
                    shown(shorten(row["name"], 90)),
                    row["median_us"],
                    row["min_us"],
                    row["max_us"],
                    int(row["n"]),
                    row["dur_us"],
                )
                for _, row in rows
            ],
            hovertemplate=f"<b>{role.title}</b><br>%{{customdata[0]}}<br>in this step %{{customdata[5]:.2f}} µs<br>"
            "median %{customdata[1]:.2f} µs (%{customdata[2]:.2f}–%{customdata[3]:.2f}, n %{customdata[4]}), profiled"
            "<extra></extra>",
        )
    )


def _text(role: Role, dur_us: float, end_us: float) -> str:
    """The role and its time where the bar has room for them, the time alone where it has a little, else nothing."""
    room = dur_us / (end_us * 1.22) * _PLOT_PX / _CHARACTER_PX
    time = f"{dur_us:.0f}" if dur_us >= 100 else f"{dur_us:.1f}"
    whole = f"{role.title} {time}"
    return whole if len(whole) <= room else time if len(time) <= room else ""
