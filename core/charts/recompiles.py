"""Compiles against calls: how many there were by then and why, and after how many calls they have paid for themselves."""

from __future__ import annotations

import math
from collections.abc import Sequence

import plotly.graph_objects as go

from core.analysis.breakeven import ALIKE, UNKNOWN, PayBackOfList
from core.analysis.recompiles import COMPILED, FAILED, JIT, RAN_EAGER, RECOMPILED, REUSED, LedgerRow
from core.analysis.wording import about, seconds, us
from core.charts.layout import shown, source_line
from core.charts.lines import line_figure, wrapped
from core.charts.palette import backend_colours, look

#: What stands out on a line; what was reused is a small dot.
_SYMBOLS = {COMPILED: "circle", RECOMPILED: "diamond", JIT: "triangle-up", RAN_EAGER: "x", FAILED: "square-x-open"}
_LEGEND = (
    (COMPILED, "compiled"),
    (RECOMPILED, "recompiled"),
    (JIT, "Triton JIT"),
    (RAN_EAGER, "ran eager"),
    (FAILED, "failed"),
)
#: Lines of equal counts stand a little apart: this share of the highest, and all of them never so far that they read as
#: another count.
_APART, _APART_MAX, _APART_IN_ALL = 0.04, 0.12, 0.3
_TICKS_MAX = 20
_CALLS_MIN = 1e4
#: How much further down the source line stands under labels of two lines.
_SECOND_LINE_PX = 24


def compile_counts(rows: Sequence[LedgerRow], *, source: Sequence[str], dark: bool) -> go.Figure:
    """A step line a series: compiles up to each call (forward graphs; for a series that compiles nothing itself, Triton's JIT
    compiles), with a mark where it compiled, ran eager or failed; dotted for backward graphs. customdata: run id, then what the
    hover says."""
    figure = line_figure(dark=dark)
    names = list(dict.fromkeys(row.series for row in rows))
    colours = backend_colours(names)
    highest = max((count for row in rows if (count := _count(row)) is not None), default=1)
    apart = min(_APART * highest, _APART_MAX, _APART_IN_ALL / max(1, len(names) - 1))
    for position, name in enumerate(names):
        own = [row for row in rows if row.series == name]
        _add_counts(figure, own, colours[name], position * apart)
    seen = {row.kind for row in rows}
    for kind, words in _LEGEND:
        if kind in seen:
            mark = {
                "symbol": _SYMBOLS[kind],
                "size": 12,
                "color": look(dark).text,
                "line": {"width": 2, "color": look(dark).text},
            }
            figure.add_trace(go.Scatter(mode="markers", name=words, x=[None], y=[None], marker=mark, hoverinfo="skip"))
    sizes = {row.call: row.values for row in rows}
    margin = 0.05 * len(sizes)  # also for calls without a mark
    figure.update_xaxes(title="call", range=[min(sizes, default=1) - margin, max(sizes, default=1) + margin])
    if len(sizes) <= _TICKS_MAX:
        labels = [f"{call}<br>{' × '.join(map(str, values))}" for call, values in sorted(sizes.items())]
        figure.update_xaxes(tickvals=sorted(sizes), ticktext=labels, title="call, and its sizes")
    figure.update_yaxes(title_text="compiles so far", range=[-0.06 * highest, 1.08 * highest + 6 * _APART_MAX])
    figure.update_yaxes(dtick=1 if highest <= 12 else None)
    source_line(figure, source, dark=dark)
    if len(sizes) <= _TICKS_MAX:
        figure.layout.annotations[-1].update(yshift=figure.layout.annotations[-1].yshift - _SECOND_LINE_PX)
        figure.update_layout(
            margin={"b": figure.layout.margin.b + _SECOND_LINE_PX}, height=figure.layout.height + _SECOND_LINE_PX
        )
    return figure


def _count(row: LedgerRow) -> int | None:
    return row.jits_so_far if row.jits_so_far and not row.compiles else row.compiles


def _marked(own: Sequence[LedgerRow]) -> list[tuple[LedgerRow, int, str]]:
    """The rows that have a mark, with the count at which it stands, and that count in words. A call that failed stands at the
    last count that is known; one of which nobody knows what it did has no mark."""
    found, last = [], 0
    for row in own:
        count = _count(row)
        last = last if count is None else count
        if count is not None or row.kind == FAILED:
            found.append((row, last, f"{last:,}" if count is not None else f"at least {last:,}"))
    return found


def _add_counts(figure: go.Figure, own: Sequence[LedgerRow], tint: str, lift: float) -> None:
    known = [(row, count) for row in own if (count := _count(row)) is not None]
    title, marked = shown(own[0].title), _marked(own)
    figure.add_trace(
        go.Scatter(
            mode="lines",
            name=title,
            legendgroup=own[0].series,
            x=[row.call for row, _ in known],
            y=[count + lift for _, count in known],
            line={"color": tint, "width": 2.5, "shape": "hv"},
            hoverinfo="skip",
        )
    )
    figure.add_trace(
        go.Scatter(
            mode="markers",
            name=title,
            legendgroup=own[0].series,
            showlegend=False,
            x=[row.call for row, *_ in marked],
            y=[count + lift for _, count, _ in marked],
            marker={
                "opacity": 1,
                "symbol": [_SYMBOLS.get(row.kind, "circle") for row, *_ in marked],
                "size": [13 if row.kind in _SYMBOLS else 5 for row, *_ in marked],
                "color": tint,
                "line": {"width": 2, "color": tint},
            },
            customdata=[(row.run_id, row.call, shown(row.sizes), told, _hover(row)) for row, _, told in marked],
            hovertemplate=f"<b>{title}</b>, call %{{customdata[1]}}, %{{customdata[2]}}<br>%{{customdata[4]}}<br>"
            "%{customdata[3]} compiled so far<extra></extra>",
        )
    )
    backward = [(row, row.backward_compiles) for row in _known_backward(own)]
    if backward:
        figure.add_trace(
            go.Scatter(
                mode="lines",
                name=f"{title}, backward",
                legendgroup=own[0].series,
                x=[row.call for row, _ in backward],
                y=[(count or 0) + lift for _, count in backward],
                line={"color": tint, "width": 2, "shape": "hv", "dash": "dot"},
                customdata=[(row.run_id, row.call, count) for row, count in backward],
                hovertemplate=f"<b>{title}</b>, call %{{customdata[1]}}<br>%{{customdata[2]}} backward graphs compiled so far"
                "<extra></extra>",
            )
        )


def _known_backward(own: Sequence[LedgerRow]) -> list[LedgerRow]:
    """The calls at which backward compiles were counted; none where there never was one."""
    known = [row for row in own if row.backward_compiles is not None]
    return known if any(row.backward_compiles for row in known) else []


def _hover(row: LedgerRow) -> str:
    told = [row.outcome, *(reason.plain for reason in row.reasons)]
    told += [row.why] if row.why and not row.reasons else []
    told += [row.now_dynamic] if row.now_dynamic else []
    told += [f"first call {seconds(row.first_call_s)}"] if row.first_call_s is not None and row.kind != REUSED else []
    return "<br>".join(wrapped(text) for text in dict.fromkeys(told))


def break_even_chart(found: Sequence[PayBackOfList], *, source: Sequence[str], dark: bool) -> go.Figure:
    """Seconds ahead of the other series after so many calls, drawn as in the list: a line begins below zero by what compiling
    cost, and crosses zero where it has paid. Dashed where the steps differ by no more than the noise."""
    figure = line_figure(dark=dark)
    known = [one for one in found if one.verdict != UNKNOWN and one.lost_s is not None and one.won_us is not None]
    colours = backend_colours([one.series for one in known])
    top = max([_CALLS_MIN, *(10.0 * one.calls for one in known if one.calls)])
    lowest = max((abs(one.lost_s or 0.0) for one in known), default=0.0) or max(
        (abs(one.won_us or 0.0) * top / 1e6 for one in known), default=1.0
    )
    for one in known:
        _add_balance(figure, one, colours[one.series], top, dark=dark)
    _name_crossings(figure, known)
    against = known[0].against_title if known else "eager"
    figure.add_hline(y=0, line={"color": look(dark).text, "width": 1.5})
    figure.update_xaxes(
        title="calls, drawn as in the list", type="log", range=[0, math.log10(top) + 0.05], exponentformat="none"
    )
    figure.update_xaxes(tickformat=",d", dtick=1)
    figure.update_yaxes(title_text=f"seconds ahead of {shown(against)}", range=[-1.25 * lowest, 1.25 * lowest])
    source_line(figure, source, dark=dark)
    return figure


def _add_balance(figure: go.Figure, one: PayBackOfList, tint: str, top: float, *, dark: bool) -> None:
    lost_s, won_us = one.lost_s or 0.0, one.won_us or 0.0
    steps = 160
    calls = [10 ** (math.log10(top) * step / steps) for step in range(steps + 1)]
    low_us, high_us = one.won_low_us or 0.0, one.won_high_us or 0.0
    figure.add_trace(
        go.Scatter(
            mode="lines",
            legendgroup=one.series,
            showlegend=False,
            x=[*calls, *reversed(calls)],
            y=[*(n * low_us / 1e6 - lost_s for n in calls), *(n * high_us / 1e6 - lost_s for n in reversed(calls))],
            fill="toself",
            fillcolor=f"rgba{(*(int(tint[i : i + 2], 16) for i in (1, 3, 5)), 0.14)}",
            line={"width": 0},
            hoverinfo="skip",
        )
    )
    figure.add_trace(
        go.Scatter(
            mode="lines",
            name=shown(one.title),
            legendgroup=one.series,
            x=calls,
            y=[n * won_us / 1e6 - lost_s for n in calls],
            line={"color": tint, "width": 2.5, "dash": "dash" if one.verdict == ALIKE else "solid"},
            customdata=[wrapped(one.words)] * len(calls),
            hovertemplate=f"<b>{shown(one.title)}</b> after %{{x:,.0f}} calls: %{{y:,.3g}} s ahead<br>lost {seconds(lost_s)}, "
            f"won {us(won_us)} a call<br>%{{customdata}}<extra></extra>",
        )
    )
    if one.calls is not None:
        figure.add_trace(
            go.Scatter(
                mode="markers",
                legendgroup=one.series,
                showlegend=False,
                x=[one.calls],
                y=[0],
                marker={"symbol": "diamond", "size": 13, "color": tint},
                customdata=[wrapped(one.words)],
                hovertemplate=f"<b>{shown(one.title)}</b><br>%{{customdata}}<extra></extra>",
            )
        )


def _name_crossings(figure: go.Figure, known: Sequence[PayBackOfList]) -> None:
    """After how many calls each line crosses zero, each text on a line of its own: crossings may be close."""
    even = sorted((one.calls, one.title) for one in known if one.calls)
    for rank, (calls, title) in enumerate(even):
        figure.add_annotation(
            x=math.log10(calls),
            y=0,
            ax=0,
            ay=-28 - 26 * rank,
            xanchor="right",
            text=f"{about(calls)} calls, {shown(title)}",
            font={"size": 15},
            arrowwidth=1,
            arrowhead=0,
            standoff=6,
        )
