"""The operators of a run as a table: CPU time, the GPU time they brought about, and what they were given."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import streamlit as st

from core.analysis.operators import operator_table, sentence, transposed
from core.glossary import explain
from core.store.entry import Entry
from core.trace import GPU_WORK, Tables, kind_mask
from core.ui import words

_A_STEP = "Mean over the profiled steps."
_COLUMNS = (
    "name", "calls_per_step", "n", "self_median_us", "total_median_us", "self_step_us", "total_step_us",
    "device_self_step_us", "device_total_step_us", "launches",
)  # fmt: skip
_INPUTS = ("input_dims", "input_strides")
_ON_GPU_ALONE = ("device_self_step_us", "device_total_step_us", "launches")


@st.cache_resource(max_entries=64, show_spinner=False)
def _table(path: Path, stamp: str, by_shapes: bool, _tables: Tables) -> pd.DataFrame:
    return operator_table(_tables, by_shapes=by_shapes)


@st.cache_resource(max_entries=64, show_spinner=False)
def _view_sentence(path: Path, stamp: str, _tables: Tables) -> str | None:
    found = transposed(_tables)
    return None if found is None else sentence(found)


@st.fragment
def show(entry: Entry, tables: Tables) -> None:
    """Draws the operator table of a run under its heading, and one sentence on what a view does where the trace has it."""
    st.subheader("Operators", help=f"{explain('operator')} {explain('self time')}", anchor="operators")
    by_shapes = st.toggle(
        "by input shapes",
        key=f"operators:by-shapes:{entry.manifest.id}",
        help=f"One row for each operator and the sizes it was called with. {explain('input shapes')}",
    )
    table = _table(entry.path, entry.stamp, by_shapes, tables)
    if table.empty:
        st.caption("The trace holds no operators: they were not recorded.")
        return
    on_gpu = bool(kind_mask(tables.events, *GPU_WORK).any())
    known = {name: bool(table[name].notna().any()) for name in _INPUTS}
    order = (_COLUMNS[0], *_INPUTS, *_COLUMNS[1:]) if by_shapes else (*_COLUMNS, *_INPUTS)
    shown = [name for name in order if known.get(name, True) and (on_gpu or name not in _ON_GPU_ALONE)]
    st.dataframe(
        table[shown],
        column_config=_column_config(),
        hide_index=True,
        placeholder=words.UNKNOWN,
        key=f"operators-table-{entry.manifest.id}-{by_shapes}",
    )
    told = _view_sentence(entry.path, entry.stamp, tables)
    if told is not None:
        st.markdown(words.plain(told), help=explain("strides"))
    if not all(known.values()):
        missing = " and ".join(text for name, text in (("input_dims", "input shapes"), ("input_strides", "strides"))
                               if not known[name])  # fmt: skip
        st.caption(f"The {missing} of these operators are unknown: the profile was taken without them.")


def _column_config() -> dict[str, Any]:
    number, text = st.column_config.NumberColumn, st.column_config.TextColumn
    self_time = f"{explain('self time')} Launch calls are in it. {explain('profiled')}"
    total, device = f"{explain('cpu total')} {explain('profiled')}", explain("device time")
    return {
        "name": text("Operator", help=explain("operator"), width="medium"),
        "calls_per_step": number("Calls a step", format="%g", help=f"How often a step calls it. {_A_STEP}"),
        "n": number("n", help=f"{explain('n')} Here: calls in the whole profile."),
        "self_median_us": number("Self CPU a call, µs", format="%.2f", help=f"Median over n calls. {self_time}"),
        "total_median_us": number("CPU total a call, µs", format="%.2f", help=f"Median over n calls. {total}"),
        "self_step_us": number("Self CPU a step, µs", format="%.2f", help=f"Sum over its calls. {_A_STEP} {self_time}"),
        "total_step_us": number("CPU total a step, µs", format="%.2f", help=f"Sum over its calls. {_A_STEP} {total}"),
        "device_self_step_us": number(
            "Self GPU a step, µs", format="%.2f", help=f"{device} Without the operators it called. {_A_STEP}"
        ),
        "device_total_step_us": number(
            "GPU total a step, µs", format="%.2f", help=f"{device} With the operators it called. {_A_STEP}"
        ),
        "launches": number("Kernels a step", format="%g", help=f"Kernels it launched itself. {_A_STEP}"),
        "input_dims": text("Input sizes", help=explain("input shapes"), width="medium"),
        "input_strides": text("Input strides", help=explain("strides"), width="medium"),
    }
