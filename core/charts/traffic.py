"""Traffic: what the whole log costs on each backend, compiling and working apart."""

from __future__ import annotations

from collections.abc import Sequence

import plotly.graph_objects as go

from core.analysis.traffic import Bill, Seconds
from core.analysis.wording import seconds
from core.charts.layout import shown, source_line
from core.charts.lines import line_figure, wrapped
from core.charts.palette import backend_colours, look

_LANE_PX = 62


def traffic_chart(bills: Sequence[Bill], *, source: Sequence[str], dark: bool) -> go.Figure:
    """A bar a backend: seconds lost to compiling (hatched), then seconds of work, with the total by the steps' quartiles.
    A backend whose seconds are unknown has a sentence in its place. customdata: the backend's name, then the hover's words."""
    figure, theme = line_figure(dark=dark), look(dark)
    colours = backend_colours([bill.series for bill in bills])
    known = [(row, bill, bill.seconds) for row, bill in enumerate(bills) if bill.seconds is not None]
    tints = [colours[bill.series] for _, bill, _ in known]
    for name, hatch in (("compiling", "/"), ("working", "")):
        figure.add_trace(
            go.Bar(
                orientation="h",
                name=name,
                y=[row for row, _, _ in known],
                x=[cost.compiling_s if hatch else cost.working_s for _, _, cost in known],
                width=0.6,
                marker={
                    "color": tints,
                    "pattern": {"shape": hatch, "fgcolor": tints, "bgcolor": theme.ground, "fillmode": "replace"},
                    "line": {"width": 1, "color": "rgba(0,0,0,0.35)"},
                },
                customdata=[(bill.series, _hover(bill, cost)) for _, bill, cost in known],
                hovertemplate=f"%{{customdata[1]}}<br>{name} %{{x:,.3g}} s<extra></extra>",
            )
        )
    rows, costs = [row for row, _, _ in known], [cost for _, _, cost in known]
    figure.add_trace(
        go.Scatter(
            mode="markers",
            name="by the steps' quartiles",
            showlegend=False,
            x=[cost.total_s for cost in costs],
            y=rows,
            marker={"size": 1, "color": theme.text},
            error_x={
                "type": "data",
                "array": [cost.high_s - cost.total_s for cost in costs],
                "arrayminus": [cost.total_s - cost.low_s for cost in costs],
                "color": theme.text,
                "thickness": 1.5,
            },
            hoverinfo="skip",
        )
    )
    figure.add_trace(
        go.Scatter(
            mode="text",
            showlegend=False,
            x=[cost.high_s for cost in costs],
            y=rows,
            text=[f"  {seconds(cost.total_s)}" for cost in costs],
            textposition="middle right",
            textfont={"size": 16, "color": theme.text},
            hoverinfo="skip",
            cliponaxis=False,
        )
    )
    longest = max((cost.high_s for _, _, cost in known), default=1.0)
    for row, bill in enumerate(bills):
        if bill.seconds is None:
            figure.add_annotation(
                x=0, y=row, xanchor="left", showarrow=False, text=f"unknown: {shown(bill.why)}", font={"size": 15}
            )
    figure.update_layout(height=170 + _LANE_PX * max(1, len(bills)), barmode="stack", bargap=0.3)
    figure.update_layout(legend_traceorder="normal")
    figure.update_xaxes(title="seconds for the whole traffic, computed", range=[0, 1.2 * longest])
    figure.update_yaxes(
        tickvals=list(range(len(bills))),
        ticktext=[f"<b>{shown(bill.title)}</b>" for bill in bills],
        range=[len(bills) - 0.45, -0.55],
        tickfont={"size": 16},
        gridcolor="rgba(0,0,0,0)",
    )
    source_line(figure, source, dark=dark)
    return figure


def _hover(bill: Bill, cost: Seconds) -> str:
    told = [
        f"{seconds(cost.total_s)} for {bill.calls:,} calls, {seconds(cost.low_s)} to {seconds(cost.high_s)} by the steps' "
        "quartiles",
        bill.how,
        *([f"{bill.eager_calls:,} calls silently ran eager"] if bill.eager_calls else []),
        *([f"not compared: {bill.doubt}"] if bill.doubt else []),
    ]
    return f"<b>{shown(bill.title)}</b><br>" + "<br>".join(wrapped(one) for one in told)
