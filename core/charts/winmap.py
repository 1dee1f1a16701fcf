"""The win map: a cell a pair of sizes, coloured by the backend that is ahead, hatched where none is."""

from __future__ import annotations

from collections.abc import Sequence

import plotly.graph_objects as go

from core.analysis.winmap import ALIKE, DEPENDS, UNKNOWN, WINS, Cell, Side
from core.analysis.wording import us, us_range
from core.charts.layout import shown, source_line
from core.charts.lines import line_figure, wrapped
from core.charts.palette import backend_colours, look, mixed, text_on

_CELL_PX = 58
#: A margin of this much or more has the full colour; the least still shows whose it is.
_FULL_MARGIN, _FAINTEST = 0.4, 0.4
_NOBODY = (
    (ALIKE, "=", "= no difference beyond the noise", "/"),
    (DEPENDS, "±", "± depends on the compile", "x"),
    (UNKNOWN, "?", "? unknown", ""),
)


def win_map_chart(
    cells: Sequence[Cell], axes: Sequence[str], *, time: str, source: Sequence[str], dark: bool
) -> go.Figure:
    """Cells over the two axes. The colour is the winner's, its strength the margin, which stands in the cell; a grey cell has
    no winner, and is hatched where that is known. `time` says which time is compared. customdata: a run id of the cell, its
    index, the hover's words."""
    figure = line_figure(dark=dark)
    across, up = (sorted({cell.values[at] for cell in cells}) for at in (0, 1))
    place = {cell.index: (across.index(cell.values[0]), up.index(cell.values[1])) for cell in cells}
    colours = backend_colours([side.series for cell in cells for side in cell.sides])
    won = [cell for cell in cells if cell.verdict == WINS and cell.winner is not None]
    for name, title in dict.fromkeys((cell.winner, cell.winner_title) for cell in won):
        own = [cell for cell in won if cell.winner == name]
        _add_won(figure, own, title or "", colours[name or ""], place, time, dark=dark)
    for verdict, sign, words, hatch in _NOBODY:
        own = [cell for cell in cells if cell.verdict == verdict]
        if own:
            _add_nobody(figure, own, sign, words, hatch, place, time, dark=dark)
    figure.update_layout(height=170 + _CELL_PX * max(3, len(up)), barmode="overlay", bargap=0.03)
    ticks = {"zeroline": False, "showgrid": False}
    figure.update_xaxes(
        **ticks, title=shown(axes[0]), tickvals=list(range(len(across))), ticktext=[f"{size:,}" for size in across]
    )
    figure.update_yaxes(
        **ticks, title_text=shown(axes[1]), tickvals=list(range(len(up))), ticktext=[f"{size:,}" for size in up]
    )
    figure.update_xaxes(range=[-0.5, len(across) - 0.5])
    figure.update_yaxes(range=[-0.5, len(up) - 0.5])
    source_line(figure, source, dark=dark)
    return figure


def _add_won(
    figure: go.Figure,
    own: Sequence[Cell],
    title: str,
    tint: str,
    place: dict[int, tuple[int, int]],
    time: str,
    *,
    dark: bool,
) -> None:
    tints = [mixed(look(dark).ground, tint, _strength(cell.margin or 0.0)) for cell in own]
    # The legend takes its colour from the whole trace: that of the first cell would be as faint as its margin.
    figure.add_trace(go.Bar(name=f"{shown(title)} ({len(own)})", x=[None], y=[None], marker={"color": tint}))
    bars = _bars(own, place, time, [f"−{cell.margin:.0%}" for cell in own])
    bars.update(
        marker={"color": tints}, textfont={"color": [text_on(one) for one in tints], "size": 17}, showlegend=False
    )
    figure.add_trace(bars)


def _add_nobody(
    figure: go.Figure,
    own: Sequence[Cell],
    sign: str,
    words: str,
    hatch: str,
    place: dict[int, tuple[int, int]],
    time: str,
    *,
    dark: bool,
) -> None:
    theme = look(dark)
    bars = _bars(own, place, time, [sign] * len(own))
    bars.update(
        name=f"{words} ({len(own)})",
        marker={
            "color": theme.grid,
            "pattern": {"shape": hatch, "fgcolor": theme.faint, "bgcolor": theme.grid, "fgopacity": 0.45, "size": 9},
        },
        textfont={"color": theme.text, "size": 17},
    )
    figure.add_trace(bars)


def _bars(own: Sequence[Cell], place: dict[int, tuple[int, int]], time: str, texts: Sequence[str]) -> go.Bar:
    """Cells as bars of height one: unlike a heatmap's, they can be hatched, and are picked by a click."""
    return go.Bar(
        x=[place[cell.index][0] for cell in own],
        base=[place[cell.index][1] - 0.485 for cell in own],
        y=[0.97] * len(own),
        text=list(texts),
        textposition="inside",
        insidetextanchor="middle",
        textangle=0,
        constraintext="none",
        customdata=[(_run_of(cell), cell.index, _hover(cell, time)) for cell in own],
        hovertemplate="%{customdata[2]}<extra></extra>",
    )


def _strength(margin: float) -> float:
    return _FAINTEST + (1 - _FAINTEST) * min(1.0, margin / _FULL_MARGIN)


def _run_of(cell: Cell) -> str | None:
    """The winner's first run, or any of the cell's."""
    sides = sorted(cell.sides, key=lambda side: side.series != cell.winner)
    return next((run_id for side in sides for run_id in side.run_ids), None)


def _hover(cell: Cell, time: str) -> str:
    lines = [f"<b>{shown(cell.sizes)}</b>, by {shown(time)}", wrapped(cell.words)]
    return "<br>".join([*lines, *(_side_words(side) for side in cell.sides)])


def _side_words(side: Side) -> str:
    if side.median_us is None or side.low_us is None or side.high_us is None:
        return wrapped(f"{side.title}: unknown, {side.why or 'not measured'}")
    rounds = len(side.rounds_us)
    return wrapped(
        f"{side.title}: {us(side.median_us)} ({us_range(side.low_us, side.high_us)}), median of {rounds} "
        f"{'round' if rounds == 1 else 'rounds'}, n {side.samples}"
    )
