"""The operator table: where CPU time goes, each op without the ops it called."""

import numpy as np
import pandas as pd

from core.analysis.families import operator_family
from core.analysis.groups import enclosing, groups, step_annotations
from core.analysis.kernels import times
from core.trace import Tables, codes, column, kind_mask

COLUMNS = (
    "name", "family", "calls_per_step", "n", "self_median_us", "self_min_us", "self_max_us", "self_p25_us", "self_p75_us",
    "self_sum_us", "total_median_us",
    "share", "launches",
)  # fmt: skip


def operator_table(tables: Tables, *, step: int | None = None) -> pd.DataFrame:
    """One row per op name, by the sum of self time (duration minus that of the ops directly inside), largest first.

    Times in us. calls_per_step and launches (kernels launched per step) are NaN where the trace has no steps; share is
    of all self time. step: only the ops of that step. Ops without a duration are left out.
    """
    events = tables.events
    event_step, dur_ns = column(events, "step"), column(events, "dur_ns")
    is_op = kind_mask(events, "op") & (dur_ns >= 0)
    above = enclosing(column(events, "parent"), is_op)
    self_ns = dur_ns.copy()
    inner = np.flatnonzero(is_op & (above >= 0))
    np.subtract.at(self_ns, above[inner], dur_ns[inner])
    # Whole-microsecond files can give children a little more time than their parent.
    self_ns = np.maximum(self_ns, 0)

    in_steps = event_step >= 0 if step is None else event_step == step
    op = column(events, "op")
    launched = np.bincount(op[kind_mask(events, "kernel") & (op >= 0)], minlength=len(dur_ns))
    n_steps = len(step_annotations(tables)) if step is None else 1
    rows = np.flatnonzero(is_op if step is None else is_op & in_steps)
    name_codes, names = codes(events, "name")
    total_us = self_ns[rows].sum() / 1000
    table = []
    for part in groups(name_codes[rows]):
        own = rows[part]
        inside = own[in_steps[own]]
        found = times(self_ns[own] / 1000, total_us)
        table.append(
            {
                "name": names[name_codes[own[0]]],
                "family": operator_family(names[name_codes[own[0]]]),
                "calls_per_step": len(inside) / n_steps if n_steps else np.nan,
                "n": found["n"],
                "self_median_us": found["median_us"],
                "self_min_us": found["min_us"],
                "self_max_us": found["max_us"],
                "self_p25_us": found["p25_us"],
                "self_p75_us": found["p75_us"],
                "self_sum_us": found["sum_us"],
                "total_median_us": float(np.median(dur_ns[own] / 1000)),
                "share": found["share"],
                "launches": launched[inside].sum() / n_steps if n_steps else np.nan,
            }
        )
    table.sort(key=lambda row: -row["self_sum_us"])
    return pd.DataFrame(table, columns=list(COLUMNS))
