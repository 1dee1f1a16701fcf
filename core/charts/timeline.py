"""The kernel timeline: CPU operators nested, launch calls, GPU streams; drawn through the level-of-detail query.

Spans wide enough to see are bars; narrower ones are a raster whose colour is the family that fills a cell most and
whose strength is how much of it is filled.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from core.analysis.chain import Chain
from core.analysis.lod import Spans, View
from core.charts.layout import base_figure, shown, source_line
from core.charts.palette import FAMILY_COLOURS, colour, look, mixed, shorten, text_on

LANE_PX = 34
_TEXT_BARS_MAX = 400
_PLOT_PX = 640
_CHARACTER_PX = 7.5
_CHARACTERS_MIN = 4
_CHARACTERS_BOTH_ENDS = 18
_DIM = 0.28


@dataclass(frozen=True)
class Window:
    """What part of the trace is drawn, in ns of the trace, and which instant counts as 0 µs on the axis."""

    start_ns: int
    end_ns: int
    origin_ns: int


def timeline(
    spans: Spans,
    view: View,
    window: Window,
    *,
    notes: Mapping[int, str] | None = None,
    chain: Chain | None = None,
    gaps: pd.DataFrame | None = None,
    gap_note: str = "",
    source: Sequence[str] = (),
    dark: bool,
) -> go.Figure:
    """The figure; each bar's customdata is [event row, name, start µs, duration µs, lane kind, note].

    `notes` maps event rows to what else their hover says. `chain` lights up those events, dims the others and joins them
    by a line. `gaps` (as of busy.gaps) are hatched on the lane of the GPU work that ends them; `gap_note` is what their
    hover says besides their length. Their customdata is [duration µs]: a click on them means nothing. `source` is where the
    numbers come from, for a picture that leaves the page.
    """
    figure = base_figure(dark=dark)
    lit = np.isin(spans.row, chain.rows) if chain else np.ones(len(spans.row), bool)
    _add_raster(figure, spans, view, window, dimmed=chain is not None, dark=dark)
    _add_bars(figure, spans, view.rows, window, lit, notes or {}, chosen=chain is not None, dark=dark)
    if gaps is not None:
        _add_gaps(figure, spans, view, gaps, gap_note, window, dark=dark)
    if chain is not None:
        _add_joins(figure, spans, chain, window, dark=dark)
    unit, scale = axis_unit(window)
    lanes = len(spans.lane_labels)
    figure.update_layout(
        height=76 + LANE_PX * lanes,
        barmode="overlay",
        bargap=0.12,
        showlegend=False,
        dragmode="zoom",
        clickmode="event+select",
    )
    figure.update_xaxes(
        title=f"time, {unit} from the start of {'the step' if window.origin_ns else 'the profile'}",
        range=[(window.start_ns - window.origin_ns) / scale, (window.end_ns - window.origin_ns) / scale],
    )
    figure.update_yaxes(
        tickvals=list(range(lanes)),
        ticktext=lane_titles(spans),
        range=[lanes - 0.4, -0.6],
        fixedrange=True,
        automargin=True,
        tickfont={"size": 13},
    )
    source_line(figure, source, dark=dark)
    return figure


def lane_titles(spans: Spans) -> list[str]:
    """A title for the first lane of each group; nested lanes below it go without."""
    titles: list[str] = []
    for label, kind in zip(spans.lane_labels, spans.lane_kinds, strict=True):
        base, nested, _ = label.partition(" · ")
        words = {"op": "CPU operators", "launch": "Launch calls", "gpu": base, "annotation": "GPU annotations"}[kind]
        titles.append("" if nested else words)
    repeated = {title for title in titles if title and titles.count(title) > 1}
    seen: dict[str, int] = {}
    for index, title in enumerate(titles):
        if title in repeated:
            seen[title] = seen.get(title, 0) + 1
            titles[index] = f"{title}, thread {seen[title]}"
    return titles


def _fitting(names: list[str], dur_ns: np.ndarray, window: Window) -> list[str]:
    """Each name cut to what its bar has room for on a chart of usual width; none where that says nothing."""
    room = dur_ns / (window.end_ns - window.start_ns) * _PLOT_PX / _CHARACTER_PX
    return [
        shown(_cut(name, int(fits))) if fits >= _CHARACTERS_MIN else "" for name, fits in zip(names, room, strict=True)
    ]


def _cut(name: str, fits: int) -> str:
    """In little room the start of a name says most; in more room start and end do."""
    if fits < _CHARACTERS_BOTH_ENDS and len(name) > fits:
        return name[: fits - 1] + "…"
    return shorten(name, fits)


def axis_unit(window: Window) -> tuple[str, float]:
    """The unit of the time axis for this window, and how many ns it is."""
    return ("ms", 1e6) if window.end_ns - window.start_ns > 20_000_000 else ("µs", 1e3)


def _add_bars(
    figure: go.Figure,
    spans: Spans,
    rows: np.ndarray,
    window: Window,
    lit: np.ndarray,
    notes: Mapping[int, str],
    *,
    chosen: bool,
    dark: bool,
) -> None:
    _, scale = axis_unit(window)
    theme = look(dark)
    groups: dict[tuple[str, bool], list[int]] = {}
    for index in rows.tolist():
        family = spans.families[spans.family_code[index]]
        tint = colour(family.removeprefix("gpu_"), spans.names[spans.name[index]])
        groups.setdefault((tint, bool(lit[index])), []).append(index)
    with_text = len(rows) <= _TEXT_BARS_MAX
    for (tint, is_lit), members in groups.items():
        index = np.array(members)
        names = [spans.names[code] for code in spans.name[index]]
        kinds = [spans.lane_kinds[lane] for lane in spans.lane[index]]
        start_us = (spans.start_ns[index] - window.origin_ns) / 1e3
        rows_here = spans.row[index].tolist()
        told = [f"<br>{shown(notes[row])}" if row in notes else "" for row in rows_here]
        figure.add_trace(
            go.Bar(
                orientation="h",
                base=(spans.start_ns[index] - window.origin_ns) / scale,
                x=spans.dur_ns[index] / scale,
                y=spans.lane[index],
                width=0.86,
                customdata=list(
                    zip(rows_here, map(shown, names), start_us, spans.dur_ns[index] / 1e3, kinds, told, strict=True)
                ),
                marker={
                    "color": tint,
                    "opacity": 1.0 if is_lit else _DIM,
                    "line": {"width": 2 if chosen and is_lit else 0, "color": theme.mark},
                },
                text=_fitting(names, spans.dur_ns[index], window) if with_text else None,
                textposition="inside" if with_text else "none",
                textfont={"size": 12, "color": text_on(tint)},
                insidetextanchor="middle",
                textangle=0,
                constraintext="none",
                hovertemplate="<b>%{customdata[1]}</b><br>start %{customdata[2]:,.3f} µs<br>"
                "duration %{customdata[3]:,.3f} µs%{customdata[5]}<br>click to follow it<extra></extra>",
                # Streamlit sends clicks back as a selection; Plotly must not fade the rest by itself as well.
                selected={"marker": {"opacity": 1.0 if is_lit else _DIM}},
                unselected={"marker": {"opacity": 1.0 if is_lit else _DIM}},
            )
        )


def _add_gaps(
    figure: go.Figure, spans: Spans, view: View, gaps: pd.DataFrame, note: str, window: Window, *, dark: bool
) -> None:
    start_ns, end_ns = gaps["start_us"].to_numpy() * 1e3, (gaps["start_us"] + gaps["dur_us"]).to_numpy() * 1e3
    pixel_pair_ns = view.edges_ns[1] - view.edges_ns[0]
    seen = (end_ns > view.start_ns) & (start_ns < view.end_ns) & (end_ns - start_ns >= pixel_pair_ns)
    shown = gaps[seen]
    if shown.empty:
        return
    _, scale = axis_unit(window)
    figure.add_trace(
        go.Bar(
            name="gaps",
            orientation="h",
            base=(start_ns[seen] - window.origin_ns) / scale,
            x=shown["dur_us"].to_numpy() * 1e3 / scale,
            y=_lanes_of(spans, shown["row"].to_numpy(), end_ns[seen]),
            width=0.86,
            customdata=shown[["dur_us"]].to_numpy(),
            marker={
                "color": "rgba(0,0,0,0)",
                "line": {"width": 0},
                "pattern": {"shape": "/", "size": 7, "solidity": 0.16, "fgcolor": look(dark).faint},
            },
            hovertemplate=f"GPU idle %{{customdata[0]:,.1f}} µs here<br>{note}<extra></extra>",
            selected={"marker": {"opacity": 1.0}},
            unselected={"marker": {"opacity": 1.0}},
        )
    )


def _lanes_of(spans: Spans, rows: np.ndarray, start_ns: np.ndarray) -> np.ndarray:
    """The lanes of GPU work by its event rows and starts; a search in each lane, for the spans may be a million."""
    found = np.full(len(rows), spans.lane_kinds.index("gpu"))
    for lane in (index for index, kind in enumerate(spans.lane_kinds) if kind == "gpu"):
        low, high = spans.offsets[lane], spans.offsets[lane + 1]
        at = low + np.searchsorted(spans.start_ns[low:high], np.rint(start_ns))
        found[spans.row[np.minimum(at, high - 1)] == rows] = lane
    return found


def _add_raster(figure: go.Figure, spans: Spans, view: View, window: Window, *, dimmed: bool, dark: bool) -> None:
    if not view.count.any():
        return
    _, scale = axis_unit(window)
    middle = (view.edges_ns[:-1] + view.edges_ns[1:]) / 2
    # One number a cell: the family's index, and behind the point how full the cell is.
    z = np.where(view.family_code >= 0, view.family_code + np.clip(view.busy, 0.02, 0.98), np.nan)
    hover = np.stack([view.count, np.nan_to_num(view.busy) * 100], axis=-1)
    figure.add_trace(
        go.Heatmap(
            z=np.round(z, 2),
            x=(middle - window.origin_ns) / scale,
            y=np.arange(len(spans.lane_labels)),
            customdata=np.round(hover).astype(np.int32),
            zmin=0,
            zmax=len(spans.families),
            colorscale=_raster_scale(spans.families, dark=dark),
            showscale=False,
            opacity=_DIM if dimmed else 1.0,
            ygap=5,
            hoverongaps=False,
            hovertemplate="%{customdata[0]} short events here, %{customdata[1]}% of the time<br>zoom in<extra></extra>",
        )
    )


def _raster_scale(families: tuple[str, ...], *, dark: bool) -> list[tuple[float, str]]:
    ground = look(dark).ground
    scale: list[tuple[float, str]] = []
    for index, family in enumerate(families):
        full = FAMILY_COLOURS.get(family.removeprefix("gpu_"), FAMILY_COLOURS["other"])
        scale.append((index / len(families), mixed(ground, full, 0.3)))
        scale.append(((index + 1) / len(families), full))
    return scale


def _add_joins(figure: go.Figure, spans: Spans, chain: Chain, window: Window, *, dark: bool) -> None:
    """A line from the operator through each launch to its GPU work."""
    _, scale = axis_unit(window)
    at = {int(row): index for index, row in enumerate(spans.row) if int(row) in set(chain.rows)}
    xs: list[float | None] = []
    ys: list[float | None] = []

    def point(row: int) -> None:
        index = at[row]
        xs.append((int(spans.start_ns[index]) - window.origin_ns) / scale)
        ys.append(int(spans.lane[index]))

    pairs = (
        list(zip(chain.launches, chain.work, strict=False))
        if len(chain.launches) > 1
        else [(launch, work) for launch in chain.launches for work in chain.work]
    )
    for launch, work in pairs:
        for row in (chain.operator, launch, work):
            if row is not None and row in at:
                point(row)
        xs.append(None)
        ys.append(None)
    figure.add_trace(
        go.Scatter(
            x=xs,
            y=ys,
            mode="lines+markers",
            line={"color": look(dark).mark, "width": 2.5},
            marker={"size": 7, "color": look(dark).mark},
            hoverinfo="skip",
            name="joins",
        )
    )
