"""A win map on the page: who is ahead at each pair of sizes, by which time, and the rounds of the cell that was picked."""

from __future__ import annotations

import streamlit as st

from core.analysis.findings import map_findings, outlasting
from core.analysis.sizes import KERNEL_TIME, STEP_TIME, time_words
from core.analysis.winmap import Cell, win_map
from core.charts.winmap import win_map_chart
from core.glossary import explain
from core.sweep import axis_sizes
from core.ui import chrome, shapes_celltables, shapes_link, words
from core.ui.shapes_chart import draw, n_words, show_table, source
from core.ui.shapes_data import Shown, link_to_run

_BY = {"kernel": KERNEL_TIME, "step": STEP_TIME}
_TITLES = {"kernel": "Kernel time", "step": "Step time"}


def who_wins(found: Shown) -> None:
    """The map, its cells as a table, and the cell that was picked."""
    by = _by(found)
    told = time_words(_BY[by], (point for one in found.series for point in one.points))
    what = f"{told.capitalize()} a step"
    st.subheader(
        f"Who takes less {told}?", anchor="map",
        help=f"{explain('win map')} {explain('noise')} {explain('kernel time')} {explain('step time')}",
    )  # fmt: skip
    longer = outlasting(found.series) if by == "step" else None
    cells = win_map(found.series, found.sweep.axes, time=_BY[by])
    for index, sentence in enumerate(map_findings(cells, time=told), 1):
        st.markdown(f"**{index}.** {words.plain(sentence)}")
    if longer is not None:
        st.caption(words.plain(longer))
    n = n_words(side.samples for cell in cells for side in cell.sides if side.samples)
    taken = "profiled" if by == "kernel" else "unprofiled"
    how = f"{told} a step, {taken}, {n} steps a backend and cell over {found.sweep.rounds} rounds, each compiled anew"
    axes = [size.title.lower() for size in axis_sizes(found.sweep)]
    figure = win_map_chart(cells, axes, time=told, source=source(found, how), dark=chrome.is_dark())
    table, columns = shapes_celltables.cells(cells, what=what)
    clicked = draw(
        found, figure, name=f"win-map-{by}", alt="Who is ahead at each pair of sizes", table=lambda: table, opens="cell"
    )
    _cell(found, cells, _cell_of(cells, clicked), what, by)
    show_table(table, columns, name=f"cells-{by}", found=found)


def _by(found: Shown) -> str:
    key = "shapes:by"
    titles = _TITLES if found.on_gpu else {**_TITLES, "kernel": "Operator time"}
    wanted = shapes_link.read().get(shapes_link.BY)
    if shapes_link.look_arrived(shapes_link.BY) or st.session_state.get(key) not in _BY:
        st.session_state[key] = wanted if wanted in _BY else "kernel"
    st.segmented_control(
        "Who wins by", list(_BY), format_func=titles.__getitem__, key=key, required=True,
        help=f"{explain('kernel time')} {explain('step time')} The two can name different winners.",
    )  # fmt: skip
    chosen: str = st.session_state[key]
    if wanted is not None or chosen != "kernel":
        shapes_link.write_look(shapes_link.BY, chosen)
    return chosen


def _cell_of(cells: tuple[Cell, ...], run_id: str | None) -> int | None:
    """The position of the cell that a clicked run belongs to."""
    return next((at for at, cell in enumerate(cells) if any(run_id in side.run_ids for side in cell.sides)), None)


def _cell(found: Shown, cells: tuple[Cell, ...], clicked: int | None, what: str, by: str) -> None:
    seen, key = f"shapes:cell-clicked:{by}", f"shapes:cell:{by}:{found.entry.head.id}"
    if clicked is not None and st.session_state.get(seen) != clicked:
        st.session_state[key] = clicked
    st.session_state[seen] = clicked
    at: int = st.selectbox(
        "Cell", list(range(len(cells))), format_func=lambda index: cells[index].sizes, key=key, width=420,
        help="The cell whose rounds follow; a click into the map picks it too.",
    )  # fmt: skip
    cell = cells[at]
    st.markdown(f"**{words.plain(cell.sizes)}**: {words.plain(cell.words)}.")
    table, columns = shapes_celltables.sides(cell, what=what)
    show_table(table, columns, name=f"cell-{by}", found=found)
    with st.container(horizontal=True):
        for side in cell.sides:
            if side.run_ids and side.run_ids[0] in found.by_run:
                link_to_run(found, side.run_ids[0])
