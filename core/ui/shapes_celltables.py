"""The numbers behind a win map as tables: its cells, and the rounds of one of them."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from core.analysis.winmap import Cell
from core.glossary import explain
from core.ui.shapes_tables import TIME, Table, without_empty


def cells(rows: Sequence[Cell], *, what: str) -> Table:
    """The cells of a win map, with every backend's median over its rounds."""
    table = pd.DataFrame(
        [
            {
                "sizes": row.sizes,
                "winner": row.winner_title or {"alike": "no difference"}.get(row.verdict, row.verdict),
                "margin": row.margin,
                **{f"{side.series}_us": side.median_us for side in row.sides},
                "rounds": " · ".join(f"{len(side.rounds_us)}" for side in row.sides),
                "words": row.words,
                "run": next((run for side in row.sides for run in side.run_ids), None),
            }
            for row in rows
        ]
    )
    number, text = st.column_config.NumberColumn, st.column_config.TextColumn
    sides = {side.series: side for row in rows for side in row.sides}
    columns = {
        "sizes": text("Cell", help="The two sizes that change."),
        "winner": text("Ahead", help=explain("win map")),
        "margin": number("Margin", format="percent", help=f"How much less {what} it takes than the next one."),
        **{
            f"{name}_us": number(
                f"{side.title}, µs", format=TIME, help=f"{what}: median of the medians of the rounds that count."
            )
            for name, side in sides.items()
        },
        "rounds": text("Rounds", help="How many rounds of each backend count, in the order of the columns."),
        "words": text("In words", help=explain("noise"), width="large"),
    }  # fmt: skip
    return table, columns


def sides(cell: Cell, *, what: str) -> Table:
    """One cell of a win map: each backend's rounds."""
    table = pd.DataFrame(
        [
            {
                "backend": side.title,
                "median_us": side.median_us,
                "low_us": side.low_us,
                "high_us": side.high_us,
                "rounds": " · ".join(f"{value:.4g}" for value in side.rounds_us) or None,
                "n": side.samples,
                "peak_mb": side.peak_bytes / 1e6 if side.peak_bytes is not None else None,
                "why": side.why,
                "run": next(iter(side.run_ids), None),
            }
            for side in cell.sides
        ]
    )
    number, text = st.column_config.NumberColumn, st.column_config.TextColumn
    columns = {
        "backend": text("Backend", help=explain("backend")),
        "median_us": number(f"{what}, µs", format=TIME, help="Median of the rounds' medians."),
        "low_us": number("Smallest round, µs", format=TIME, help=explain("spread")),
        "high_us": number("Largest round, µs", format=TIME, help=explain("spread")),
        "rounds": text("Rounds, µs", help="The median of each round, in their order; each was compiled anew."),
        "n": number("n", help=f"{explain('n')} Here: measured steps, over all rounds."),
        "peak_mb": number("Peak memory, MB", format=TIME, help=f"{explain('peak memory')} The largest of the rounds."),
        "why": text("Left out because", help="Why a round does not count; empty where all do."),
    }
    return without_empty(table, ("why",)), columns
