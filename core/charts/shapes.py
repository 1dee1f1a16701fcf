"""Times and memory against size: a line a backend, the same colour and symbol for it on every chart."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from core.analysis.padding import Padding
from core.analysis.premium import Premium
from core.analysis.sizes import Memory, SizeTime
from core.charts.layout import FONT, base_figure, shown, source_line
from core.charts.lines import HEIGHT_PX, line_figure, size_axis, symbol, time_axis, wrapped
from core.charts.palette import backend_colours, look, role_colours
from core.roles import Role

_LANE_PX = 190
_NAMED_MAX = 20


def against_size(times: Sequence[SizeTime], *, axis: str, what: str, source: Sequence[str], dark: bool) -> go.Figure:
    """A line a backend through its medians in µs, a bar from the lower to the upper quartile at each; `axis` is the title of
    the sizes, `what` that of the times. Points in doubt are hollow, those that silently ran eager crossed.

    customdata: run id, then what the hover says."""
    figure = line_figure(dark=dark)
    colours = backend_colours([one.series for one in times])
    for name in dict.fromkeys(one.series for one in times):
        own = [one for one in times if one.series == name]
        by_x = {x: median(one.time_us.median for one in own if one.x == x) for x in sorted({one.x for one in own})}
        figure.add_trace(_line(own[0].title, name, colours[name], list(by_x), list(by_x.values())))
        figure.add_trace(_points(own, name, colours[name]))
    size_axis(figure, [one.x for one in times], axis)
    time_axis(figure, [one.time_us.median for one in times], f"{what}, µs")
    source_line(figure, source, dark=dark)
    return figure


def _line(title: str, name: str, tint: str, x: Sequence[float], y: Sequence[float], dash: str = "solid") -> go.Scatter:
    """The line alone: its points are drawn over it. The legend shows both."""
    return go.Scatter(
        mode="lines+markers",
        name=shown(title),
        legendgroup=name,
        x=list(x),
        y=list(y),
        line={"color": tint, "width": 2.5, "dash": dash},
        marker={"symbol": symbol(name), "size": 1, "color": tint},
        hoverinfo="skip",
        customdata=[None] * len(x),
    )


def _points(own: Sequence[SizeTime], name: str, tint: str) -> go.Scatter:
    times = [one.time_us for one in own]
    return go.Scatter(
        mode="markers",
        name=shown(own[0].title),
        legendgroup=name,
        showlegend=False,
        x=[one.x for one in own],
        y=[time.median for time in times],
        error_y={
            "type": "data",
            "array": [time.p75 - time.median for time in times],
            "arrayminus": [time.median - time.p25 for time in times],
            "color": tint,
            "thickness": 1.5,
            "width": 4,
        },
        marker={
            "symbol": ["x" if one.is_eager else f"{symbol(name)}-open" if one.doubt else symbol(name) for one in own],
            "size": 11,
            "color": tint,
            "line": {"width": 2, "color": tint},
        },
        customdata=[
            (
                one.run_id,
                shown(one.sizes),
                time.p25,
                time.p75,
                time.min,
                time.max,
                time.n,
                _notes(one),
            )
            for one, time in zip(own, times, strict=True)
        ],
        hovertemplate=f"<b>{shown(own[0].title)}</b>, %{{customdata[1]}}<br>median %{{y:,.2f}} µs, half of them "
        "%{customdata[2]:,.2f} to %{customdata[3]:,.2f}<br>all %{customdata[4]:,.2f} to %{customdata[5]:,.2f}, "
        "n %{customdata[6]}%{customdata[7]}<extra></extra>",
    )


def _notes(one: SizeTime) -> str:
    told = ["ran eager: no compiled code served this call"] if one.is_eager else []
    told += [f"not compared: {one.doubt}"] if one.doubt else []
    told += [f"kernels: {' + '.join(one.kernels)}"] if one.role and one.kernels else []
    return "".join(f"<br>{wrapped(text)}" for text in told)


def role_stacks(
    times: Sequence[SizeTime], roles: Sequence[Role], *, axis: str, source: Sequence[str], dark: bool
) -> go.Figure:
    """A row of stacked bars a backend, on one scale: what each role takes of a step at every point, in the order of the
    list. customdata: run id, then what the hover says."""
    theme, colours = look(dark), role_colours(roles)
    names = list(dict.fromkeys(one.series for one in times))
    rows = max(1, len(names))
    figure = make_subplots(rows=rows, cols=1, shared_xaxes=True, shared_yaxes="all", vertical_spacing=0.16 / rows)
    figure.update_layout(base_figure(dark=dark).layout)
    order = sorted({(one.index, one.round): one.sizes for one in times}.items())
    at = {place: position for position, (place, _) in enumerate(order)}
    told: set[str] = set()
    for row, name in enumerate(names, 1):
        own = [one for one in times if one.series == name]
        for role in roles:
            found = [one for one in own if one.role == role.name]
            if found:
                figure.add_trace(_role_bar(found, role, colours[role.name], at, role.name not in told), row=row, col=1)
                told.add(role.name)
        figure.add_annotation(
            text=f"<b>{shown(own[0].title)}</b>",
            xref="x domain",
            yref=f"y{row if row > 1 else ''} domain",
            x=0.005,
            y=1.0,
            yanchor="bottom",
            showarrow=False,
            font={"size": 15, "family": FONT},
        )
    figure.update_layout(
        barmode="stack",
        bargap=0.25,
        height=150 + _LANE_PX * rows,
        legend={"orientation": "h", "y": 1.0 + 0.2 / rows, "yanchor": "bottom", "x": 0, "font": {"size": 15}},
        clickmode="event+select",
    )
    grid = {"gridcolor": theme.grid, "zeroline": False, "tickcolor": theme.grid}
    figure.update_xaxes(**{**grid, "gridcolor": "rgba(0,0,0,0)"}, automargin=True)
    figure.update_yaxes(**grid, title_text="µs a step", rangemode="tozero", automargin=True)
    every = -(-len(order) // _NAMED_MAX) or 1
    named = [(position, _bare(words)) for position, (_, words) in enumerate(order)][::every]
    figure.update_xaxes(
        row=rows, title=shown(axis), tickvals=[at for at, _ in named], ticktext=[words for _, words in named]
    )
    source_line(figure, source, dark=dark)
    return figure


def _role_bar(
    found: Sequence[SizeTime], role: Role, tint: str, at: dict[tuple[int, int], int], in_legend: bool
) -> go.Bar:
    return go.Bar(
        name=shown(role.title),
        legendgroup=role.name,
        showlegend=in_legend,
        x=[at[one.index, one.round] for one in found],
        y=[one.time_us.median for one in found],
        marker={"color": tint, "line": {"width": 1, "color": "rgba(0,0,0,0.35)"}},
        customdata=[(one.run_id, shown(one.sizes), one.time_us.n, _notes(one)) for one in found],
        hovertemplate=f"<b>{shown(found[0].title)}</b>, %{{customdata[1]}}<br>{shown(role.title)}: median %{{y:,.2f}} µs a step, "
        "n %{customdata[2]}%{customdata[3]}<extra></extra>",
    )


def _bare(sizes: str) -> str:
    """ "8 × 512" of "batch 8, seq 512": the axis has the names."""
    return " × ".join(part.rpartition(" ")[2] for part in sizes.split(", "))


def peak_memory(found: Sequence[Memory], *, axis: str, source: Sequence[str], dark: bool) -> go.Figure:
    """A line a backend through the medians of its sizes, in MB: the most memory that PyTorch had allocated at once.
    customdata: run id, then the hover's sizes."""
    figure = line_figure(dark=dark)
    colours = backend_colours([one.series for one in found])
    for name in dict.fromkeys(one.series for one in found):
        own = [one for one in found if one.series == name]
        by_x = {x: median(one.peak_bytes / 1e6 for one in own if one.x == x) for x in sorted({one.x for one in own})}
        figure.add_trace(_line(own[0].title, name, colours[name], list(by_x), list(by_x.values())))
        figure.add_trace(
            go.Scatter(
                mode="markers",
                name=shown(own[0].title),
                legendgroup=name,
                showlegend=False,
                x=[one.x for one in own],
                y=[one.peak_bytes / 1e6 for one in own],
                marker={"symbol": symbol(name), "size": 11, "color": colours[name]},
                customdata=[(one.run_id, shown(one.sizes)) for one in own],
                hovertemplate=f"<b>{shown(own[0].title)}</b>, %{{customdata[1]}}<br>peak %{{y:,.1f}} MB<extra></extra>",
            )
        )
    size_axis(figure, [one.x for one in found], axis)
    figure.update_yaxes(title_text="peak memory, MB", rangemode="tozero", tickformat=",")
    source_line(figure, source, dark=dark)
    return figure


def premium_chart(rows: Sequence[Premium], *, axis: str, source: Sequence[str], dark: bool) -> go.Figure:
    """Time with sizes left open over time compiled for one size, at each size: 1 is no premium. A line a backend and role,
    dashed for all kernels; hollow where it is noise. customdata: run id, then the hover's words."""
    figure = line_figure(dark=dark)
    known = [row for row in rows if row.ratio is not None]
    colours = backend_colours([row.series for row in known])
    for name, title in dict.fromkeys((row.series, row.title) for row in known):
        for role in dict.fromkeys(row.role for row in known if row.series == name):
            own = sorted((row for row in known if (row.series, row.role) == (name, role)), key=_row_x)
            figure.add_trace(
                go.Scatter(
                    mode="lines+markers",
                    name=shown(f"{title}: {own[0].role_title}"),
                    x=[_row_x(row) for row in own],
                    y=[row.ratio for row in own],
                    line={"color": colours[name], "width": 2.5, "dash": "dash" if role is None else "solid"},
                    marker={
                        "symbol": [f"{symbol(name)}-open" if row.is_noise else symbol(name) for row in own],
                        "size": 11,
                        "color": colours[name],
                        "line": {"width": 2, "color": colours[name]},
                    },
                    customdata=[(row.run_id, shown(row.sizes), wrapped(row.words)) for row in own],
                    hovertemplate=f"<b>{shown(title)}</b> against {shown(own[0].static_title)}, %{{customdata[1]}}<br>"
                    "%{y:.3f} times<br>%{customdata[2]}<extra></extra>",
                )
            )
    figure.add_hline(y=1, line={"color": look(dark).text, "width": 1.5, "dash": "dot"})
    size_axis(figure, [_row_x(row) for row in known], axis)
    figure.update_yaxes(title_text="times the static kernels")
    source_line(figure, source, dark=dark)
    return figure


def _row_x(row: Premium) -> int:
    return math.prod(row.values)


def padding_chart(rows: Sequence[Padding], *, source: Sequence[str], dark: bool) -> go.Figure:
    """Above, Liger's kernel beside the generated one at each width; below, the share of lanes past the row's end.
    customdata: run id, then the hover's words."""
    theme = look(dark)
    figure = make_subplots(rows=2, cols=1, shared_xaxes=True, row_heights=[0.68, 0.32], vertical_spacing=0.06)
    figure.update_layout(line_figure(dark=dark).layout)
    colours = backend_colours([name for row in rows for name in (row.series, row.against) if name])
    for name, title in dict.fromkeys((row.series, row.title) for row in rows):
        own = sorted((row for row in rows if row.series == name), key=lambda row: row.width)
        timed = [(row.width, row.liger_us.median, row.run_id, row.words) for row in own if row.liger_us]
        figure.add_trace(_timed(title, name, colours[name], timed), row=1, col=1)
    beside = [(row.against, row.against_title or "", row) for row in rows if row.against]
    for name, title in dict.fromkeys((name, title) for name, title, _ in beside):
        own = sorted({row.width: row for other, _, row in beside if other == name}.values(), key=lambda row: row.width)
        timed = [
            (row.width, row.against_us.median, row.against_run_id or "", row.words) for row in own if row.against_us
        ]
        figure.add_trace(_timed(title, name, colours[name], timed), row=1, col=1)
    idle = {row.width: row for row in rows if row.idle is not None}
    shares = [(width, row.idle or 0.0, row) for width, row in sorted(idle.items())]
    figure.add_trace(
        go.Scatter(
            # Stems and no line: between two widths the share jumps back to nothing at each power of two.
            mode="markers",
            name="idle lanes",
            showlegend=False,
            x=[width for width, _, _ in shares],
            y=[100 * share for _, share, _ in shares],
            error_y={
                "type": "data",
                "array": [0.0] * len(shares),
                "arrayminus": [100 * share for _, share, _ in shares],
                "color": theme.faint,
                "thickness": 4,
                "width": 0,
            },
            marker={"size": 10, "color": theme.faint},
            customdata=[
                (row.run_id, row.padded, "read off the kernel" if row.is_read else "computed") for *_, row in shares
            ],
            hovertemplate="width %{x:,}, padded to %{customdata[1]:,} (%{customdata[2]})<br>%{y:.0f}% of the lanes idle"
            "<extra></extra>",
        ),
        row=2,
        col=1,
    )
    size_axis(figure, [row.width for row in rows], "")
    figure.update_xaxes(gridcolor=theme.grid, zeroline=False, ticks="outside", tickcolor=theme.grid, automargin=True)
    figure.update_xaxes(row=2, title=shown(rows[0].width_name) if rows else "")
    figure.update_yaxes(gridcolor=theme.grid, zeroline=False, rangemode="tozero", automargin=True)
    figure.update_yaxes(row=1, title_text=f"{shown(rows[0].role_title)}, µs a step" if rows else "")
    figure.update_yaxes(row=2, title_text="idle lanes, %", rangemode="tozero")
    figure.update_layout(height=HEIGHT_PX + 110)
    source_line(figure, source, dark=dark)
    return figure


def _timed(title: str, name: str, tint: str, timed: Sequence[tuple[int, float, str, str]]) -> go.Scatter:
    return go.Scatter(
        mode="lines+markers",
        name=shown(title),
        x=[width for width, _, _, _ in timed],
        y=[time for _, time, _, _ in timed],
        line={"color": tint, "width": 2.5},
        marker={"symbol": symbol(name), "size": 11, "color": tint},
        customdata=[(run_id, wrapped(words)) for _, _, run_id, words in timed],
        hovertemplate=f"<b>{shown(title)}</b>, width %{{x:,}}<br>median %{{y:,.2f}} µs a step<br>%{{customdata[1]}}"
        "<extra></extra>",
    )
