"""The numbers behind the charts of the Shapes page as tables: a row a measured thing, with its run, range and n."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd
import streamlit as st

from core.analysis.breakeven import ALIKE, AT_ONCE, NEVER, PAYS, UNKNOWN, UNTIL, PayBack
from core.analysis.padding import Padding
from core.analysis.premium import Premium
from core.analysis.recompiles import LedgerRow
from core.analysis.sizes import KernelChange, Memory, SizeTime
from core.analysis.spread import Spread
from core.analysis.traffic import Bill
from core.glossary import explain

Table = tuple[pd.DataFrame, dict[str, Any]]
TIME = "%.4g"
_VERDICTS = {
    PAYS: "pays back",
    AT_ONCE: "ahead at once",
    UNTIL: "ahead until then",
    NEVER: "never",
    ALIKE: "no difference",
    UNKNOWN: "unknown",
}


def times(rows: Sequence[SizeTime], *, what: str, how: str) -> Table:
    """Times of points, in µs; `what` names the time, `how` says how it was taken."""
    table = pd.DataFrame(
        [
            {
                "backend": row.title,
                "sizes": row.sizes,
                "role": row.role or "all",
                **_spread(row.time_us),
                "ran": "eager" if row.is_eager else None,
                "clock_mhz": row.clock_mhz,
                "doubt": row.doubt,
                "kernels": " + ".join(row.kernels) or None,
                "run": row.run_id,
            }
            for row in rows
        ]
    )
    if set(table["role"]) == {"all"}:
        table = table.drop(columns="role")
    text = st.column_config.TextColumn
    columns = {
        **_who(),
        "role": text("Role", help=explain("role")),
        **_times(what, how),
        "ran": text("Ran", help=f"eager: a compiling backend that ran no compiled code. {explain('recompile limit')}"),
        "clock_mhz": st.column_config.NumberColumn(
            "Clock, MHz",
            format="localized",
            help=f"Lowest reading of the GPU's SM clock while this was taken. {explain('throttling')}",
        ),
        "doubt": text("In doubt", help="Why this time must not be set beside others; empty where it may be."),
        "kernels": text("Kernels", help=explain("kernel"), width="large"),
    }
    return without_empty(table, ("ran", "clock_mhz", "doubt", "kernels")), columns


def memory(rows: Sequence[Memory]) -> Table:
    """Peak memory of points."""
    table = pd.DataFrame(
        [
            {
                "backend": row.title,
                "sizes": row.sizes,
                "peak_mb": row.peak_bytes / 1e6,
                "first_mb": row.first_call_bytes / 1e6 if row.first_call_bytes is not None else None,
                "run": row.run_id,
            }
            for row in rows
        ]
    )
    number = st.column_config.NumberColumn
    columns = {
        **_who(),
        "peak_mb": number("Peak memory, MB", format=TIME, help=f"{explain('peak memory')} n 1."),
        "first_mb": number(
            "First call, MB",
            format=TIME,
            help="Peak memory of the first calls: compiling and the tuner's copies. n 1.",
        ),
    }
    return without_empty(table, ("first_mb",)), columns


def pay_back(rows: Sequence[PayBack]) -> Table:
    """After how many calls each size has paid for its compile."""
    table = pd.DataFrame(
        [
            {
                "backend": row.title,
                "sizes": row.sizes,
                "count": row.count,
                "verdict": _VERDICTS[row.verdict],
                "calls": _rounded(row.calls, 2),
                "lost_s": _rounded(row.lost_s, 3),
                "won_us": _rounded(row.won_us, 3),
                "won_low_us": _rounded(row.won_low_us, 3),
                "won_high_us": _rounded(row.won_high_us, 3),
                "words": row.words,
                "run": row.run_id,
            }
            for row in rows
        ]
    )
    number, text = st.column_config.NumberColumn, st.column_config.TextColumn
    won = "Median unprofiled step of the other less this one's; negative: it loses."
    columns = {
        **_who(),
        "count": number("Count", help=explain("traffic")),
        "verdict": text("Pays back?", help="What comes of it, in a word; the whole sentence stands at the end."),
        "calls": number(
            "Calls until even", format="localized", help=f"{explain('break-even')} Empty where no number can be named."
        ),
        "lost_s": number(
            "Lost to compiling, s", format="localized",
            help="Where it compiled: the first call less a step of the same size, so it also holds what else is done only "
            "once; less what the other lost. n 1.",
        ),
        "won_us": number("Won a call, µs", format="localized", help=won),
        "won_low_us": number("At least, µs", format="localized", help=f"By the steps' quartiles. {explain('quartiles')}"),
        "won_high_us": number("At most, µs", format="localized", help=f"By the steps' quartiles. {explain('quartiles')}"),
        "words": text("In words", help=explain("break-even"), width="large"),
    }  # fmt: skip
    return table if (table["count"] != 1).any() else table.drop(columns="count"), columns


def premium(rows: Sequence[Premium]) -> Table:
    """Times of kernels with sizes left open, beside those compiled for one size."""
    table = pd.DataFrame(
        [
            {
                "backend": row.title,
                "static": row.static_title,
                "sizes": row.sizes,
                "role": row.role_title,
                "dynamic_us": row.dynamic_us.median if row.dynamic_us else None,
                "static_us": row.static_us.median if row.static_us else None,
                "n": row.dynamic_us.n if row.dynamic_us else None,
                "ratio": row.ratio,
                "words": row.words,
                "run": row.run_id,
            }
            for row in rows
        ]
    )
    number, text = st.column_config.NumberColumn, st.column_config.TextColumn
    how = "Median, profiled."
    columns = {
        **_who(),
        "static": text("Beside", help="The backend that compiled each size for itself."),
        "role": text("Role", help=explain("role")),
        "dynamic_us": number("Size left open, µs", format=TIME, help=f"{explain('dynamic shapes')} {how}"),
        "static_us": number("This size alone, µs", format=TIME, help=f"{explain('specialisation premium')} {how}"),
        "n": number("n", help=explain("n")),
        "ratio": number("Ratio", format="%.3f", help="Open over static: above 1 the open one is slower."),
        "words": text("In words", help=explain("noise"), width="large"),
    }
    return table, columns


def padding(rows: Sequence[Padding]) -> Table:
    """What padded rows cost Liger's kernels."""
    table = pd.DataFrame(
        [
            {
                "backend": row.title,
                "sizes": row.sizes,
                "width": row.width,
                "padded": row.padded,
                "read": "read off the kernel" if row.is_read else "computed",
                "idle": row.idle,
                "liger_us": row.liger_us.median if row.liger_us else None,
                "n": row.liger_us.n if row.liger_us else None,
                "against": row.against_title,
                "against_us": row.against_us.median if row.against_us else None,
                "ratio": row.ratio,
                "words": row.words,
                "run": row.run_id,
            }
            for row in rows
        ]
    )
    number, text = st.column_config.NumberColumn, st.column_config.TextColumn
    columns = {
        **_who(),
        "width": number("Width", help="Elements of one row."),
        "padded": number("Padded to", help=explain("padding")),
        "read": text("Taken from", help="The kernel's own BLOCK_SIZE where its JIT compile was seen, else computed."),
        "idle": number("Idle lanes", format="percent", help=explain("padding")),
        "liger_us": number("Liger, µs", format=TIME, help=f"{explain('liger')} Median, profiled."),
        "n": number("n", help=explain("n")),
        "against": text("Against", help="The backend whose generated kernel does the same."),
        "against_us": number("Generated, µs", format=TIME, help=f"{explain('inductor')} Median, profiled."),
        "ratio": number("Ratio", format="%.2f", help="Liger over the generated kernel."),
        "words": text("In words", help=explain("noise"), width="large"),
    }
    return table, columns


def changes(rows: Sequence[KernelChange]) -> Table:
    """Where a role runs as other kernels from one size to the next."""
    table = pd.DataFrame(
        [
            {
                "backend": row.title,
                "role": row.role_title,
                "before": row.before,
                "after": row.after,
                "kernels_before": " + ".join(row.kernels_before),
                "kernels_after": " + ".join(row.kernels_after),
                "run": row.run_id,
            }
            for row in rows
        ]
    )
    text = st.column_config.TextColumn
    columns = {
        "backend": text("Backend", help=explain("backend")),
        "role": text("Role", help=explain("role")),
        "before": text("From", help="The smaller size."),
        "after": text("To", help="The next size of the list, by size."),
        "kernels_before": text("Ran before", help=f"{explain('kernel')} {explain('gemm')}", width="large"),
        "kernels_after": text("Runs then", help=f"{explain('kernel')} {explain('gemm')}", width="large"),
    }
    return table, columns


def bills(rows: Sequence[Bill], first_run: dict[str, str]) -> Table:
    """What the traffic costs on each backend; `first_run` names a run of each."""
    table = pd.DataFrame(
        [
            {
                "backend": row.title,
                "total_s": row.seconds.total_s if row.seconds else None,
                "low_s": row.seconds.low_s if row.seconds else None,
                "high_s": row.seconds.high_s if row.seconds else None,
                "compiling_s": row.seconds.compiling_s if row.seconds else None,
                "working_s": row.seconds.working_s if row.seconds else None,
                "calls": row.calls,
                "eager_calls": row.eager_calls,
                "peak_mb": row.peak_bytes / 1e6 if row.peak_bytes is not None else None,
                "steps": row.steps,
                "note": "; ".join(filter(None, (row.why, row.doubt, *row.failures))) or None,
                "run": first_run.get(row.series),
            }
            for row in rows
        ]
    )
    number, text = st.column_config.NumberColumn, st.column_config.TextColumn
    how = next((row.how for row in rows), "")
    columns = {
        "backend": text("Backend", help=explain("backend")),
        "total_s": number("In all, s", format="%.4g", help=how),
        "low_s": number("At least, s", format="%.4g", help=f"By the steps' quartiles. {explain('quartiles')}"),
        "high_s": number("At most, s", format="%.4g", help=f"By the steps' quartiles. {explain('quartiles')}"),
        "compiling_s": number(
            "Compiling, s",
            format="%.3g",
            help="First calls less a step of the same size, where they compiled: what else is done only once is in it, too.",
        ),
        "working_s": number("Working, s", format="%.4g", help="The rest: calls times their median step."),
        "calls": number("Calls", format="%,d", help=explain("traffic")),
        "eager_calls": number(
            "Ran eager", format="%,d", help=f"Calls that a compiling backend ran eager. {explain('recompile limit')}"
        ),
        "peak_mb": number("Peak memory, MB", format=TIME, help=explain("peak memory")),
        "steps": number("n", help=f"{explain('n')} Here: the fewest measured steps of a row."),
        "note": text("Note", help="Why its seconds are unknown or in doubt, and rows that failed."),
    }
    return without_empty(table, ("note",)), columns


def counts(rows: Sequence[LedgerRow]) -> pd.DataFrame:
    """How many compiles there were by each call: what the chart of recompiles draws."""
    return pd.DataFrame(
        [
            {
                "backend": row.series,
                "call": row.call,
                "sizes": row.sizes,
                "outcome": row.outcome,
                "compiles_so_far": row.compiles,
                "jits_so_far": row.jits_so_far,
                "run": row.run_id,
            }
            for row in rows
        ]
    )


def _who() -> dict[str, Any]:
    text = st.column_config.TextColumn
    return {
        "backend": text("Backend", help=explain("backend"), width=165),
        "sizes": text("Size", help="What changes; the rest stands above.", width=130),
    }


def _rounded(value: float | None, digits: int) -> float | None:
    """As the sentences round it: so many digits count."""
    return None if value is None else float(f"{value:.{digits}g}")


def _spread(found: Spread) -> dict[str, Any]:
    return {
        "median_us": found.median,
        "p25_us": found.p25,
        "p75_us": found.p75,
        "min_us": found.min,
        "max_us": found.max,
        "n": found.n,
    }


def _times(what: str, how: str) -> dict[str, Any]:
    number = st.column_config.NumberColumn
    return {
        "median_us": number(f"{what}, µs", format=TIME, help=f"{explain('median')} {how}"),
        "p25_us": number("25%, µs", format=TIME, help=explain("quartiles")),
        "p75_us": number("75%, µs", format=TIME, help=explain("quartiles")),
        "min_us": number("Smallest, µs", format=TIME, help=explain("spread")),
        "max_us": number("Largest, µs", format=TIME, help=explain("spread")),
        "n": number("n", help=explain("n")),
    }


def without_empty(table: pd.DataFrame, names: Sequence[str]) -> pd.DataFrame:
    return table.drop(columns=[name for name in names if name in table and table[name].isna().all()])
