"""Several backends of one layer on one time axis, with three remarks computed from them and the table behind the chart."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import streamlit as st
from pandas.api.types import is_numeric_dtype

from core.analysis.compiles import range_over_compiles
from core.analysis.spread import Spread
from core.analysis.stack import (
    StackedRun,
    all_roles,
    counted,
    gaps_of_the_profiler,
    one_step,
    remarks,
    stacked_run,
    unlike,
)
from core.charts.stack import Lane, stack
from core.glossary import explain
from core.roles import Role
from core.store.entry import Entry
from core.trace import Tables
from core.ui import chrome, download, session, views, words
from core.workload import layer_of

_HOLDER = "stack-holder"


@st.cache_resource(max_entries=128, show_spinner=False)
def _run(path: Path, stamp: str, _entry: Entry, _tables: Tables) -> StackedRun:
    manifest = _entry.manifest
    layer = layer_of(manifest.workload)
    mhz = [sample.sm_mhz for sample in manifest.window_clocks if sample.sm_mhz is not None]
    found = stacked_run(
        words.backend(manifest.workload),
        _tables,
        layer.roles,
        step_us=_entry.head.step_us,
        device=words.device(manifest.device),
        on_gpu=manifest.device.kind == "gpu",
        sm_mhz=sum(mhz) / len(mhz) if mhz else None,
    )
    other = next((one for one in found.roles if not one.role.matmul and one.role in layer.roles), None)
    draws = range_over_compiles(views.run_draws(manifest), other.kernels) if other else None
    return found.with_draws(draws)


def show(entries: Sequence[Entry], step: int) -> None:
    """Draws the stack of these runs; `step` is which profiled step of each is drawn, from 0 on."""
    with_tables = [(entry, session.tables(entry)) for entry in entries]
    found = [
        (entry, _run(entry.path, entry.stamp, entry, tables)) for entry, tables in with_tables if tables is not None
    ]
    if not found:
        st.info("None of these runs has a timeline; what else they hold stands below.")
        return
    runs = [run for _, run in found]
    first = found[0][0]
    roles = layer_of(first.head.workload).roles
    on_gpu = any(run.on_gpu for run in runs)
    title = "One step, side by side"
    st.subheader(title, help=f"{explain('role')} {explain('step')}", anchor="stack")
    for sentence in unlike(runs):
        st.warning(words.plain(sentence), icon=":material/warning:")
    noun = "GPU work" if on_gpu else "operator"
    source = words.source_line(
        [entry.manifest for entry, _ in found],
        f"{words.layer(first.head.workload)}, {words.sizes(first.head.workload)}, step {step + 1} as profiled",
    )
    figure = stack(
        [_lane(entry, run, step) for entry, run in found],
        all_roles(roles),
        axis=f"time, µs from the step's first {noun} (profiled)",
        source=source,
        dark=chrome.is_dark(),
    )
    with st.container(key=_HOLDER):
        st.plotly_chart(
            figure,
            theme=None,
            key="stack",
            config=download.config("fusionscope-stack"),
            alt="One step of each run on one time axis, coloured by what each kernel does of the layer",
        )
    stretched = gaps_of_the_profiler(runs, step) if on_gpu else None
    if stretched:
        st.caption(words.plain(stretched))
    for index, sentence in enumerate(remarks(runs, roles), 1):
        st.markdown(f"**{index}.** {words.plain(sentence)}")
    table = _table(found, roles)
    download.row(_HOLDER, table, [entry for entry, _ in found], name="stack")
    st.dataframe(
        table.drop(columns=["run"]),
        column_config=_columns(roles, table),
        hide_index=True,
        placeholder="–",
        key="stack-table",
    )


def _lane(entry: Entry, run: StackedRun, step: int) -> Lane:
    time = run.kernel_time_us
    spread = f"<br>  <span style='font-size:12px'>{words.range_and_n(time)}</span>"
    return Lane(
        title=run.title,
        note=", ".join(counted(one_step(run, step), "kernel" if run.on_gpu else "operator")),
        total=f"{words.time(time.median)} in all{spread}" if time else "",
        step=one_step(run, step),
    )


def _table(found: Sequence[tuple[Entry, StackedRun]], roles: Sequence[Role]) -> pd.DataFrame:
    rows = []
    for entry, run in found:
        head = entry.head
        row: dict[str, Any] = {"backend": run.title}
        row |= {role.name: _median(one.time_us if (one := run.time_of(role)) else None) for role in all_roles(roles)}
        row |= {
            "kernel_time": _median(run.kernel_time_us),
            "n": run.kernel_time_us.n if run.kernel_time_us else None,
            "step": _median(head.step_us),
            "step_range": words.range_and_n(head.step_us),
            "replay": _median(head.graph_replay_us),
            "peak_mb": head.peak_memory_bytes / 1e6 if head.peak_memory_bytes is not None else None,
            "error": head.worst_error,
            "compiles": head.n_compiles,
            "compile_s": max((one.first_call_s for one in entry.manifest.compiles), default=None),
            "clock": words.clock_range(entry.manifest.window_clocks),
            "run": head.id,
        }
        rows.append(row)
    table = pd.DataFrame(rows)
    for name, form in (("step", "{:.1f}"), ("replay", "{:.1f}"), ("peak_mb", "{:.1f}"), ("error", "{:.1e}")):
        if table[name].isna().any():  # an empty cell of a role or a compile says "none", of these it would hide a gap
            table[name] = [words.UNKNOWN if pd.isna(value) else form.format(value) for value in table[name]]
    unused = [role.name for role in all_roles(roles) if table[role.name].isna().all()]
    if not table["compiles"].any():
        unused += ["compiles", "compile_s"]
    return table.drop(columns=unused)


def _median(found: Spread | None) -> float | None:
    return found.median if found else None


def _columns(roles: Sequence[Role], table: pd.DataFrame) -> dict[str, Any]:
    number, text = st.column_config.NumberColumn, st.column_config.TextColumn
    taken = "Median over the profiled steps, summed over its kernels; – where the run launches none for it."

    def known(name: str, title: str, form: str, told: str) -> Any:
        """A column of numbers, or of texts where one of them is unknown."""
        return number(title, format=form, help=told) if is_numeric_dtype(table[name]) else text(title, help=told)

    why = "Where it is unknown, the run's own Details say why."
    return {
        "backend": text("Backend", help=explain("backend")),
        **{
            role.name: number(f"{role.title}, µs", format="%.1f", help=f"{role.help} {taken}")
            for role in all_roles(roles)
        },
        "kernel_time": number("All, µs", format="%.1f", help=f"{explain('kernel time')} Copies and fills included."),
        "n": number("n", help=f"{explain('n')} Here: profiled steps."),
        "step": known("step", "Step, µs", "%.1f", f"{explain('step time')} Median. {explain('unprofiled')} {why}"),
        "step_range": text("Step, range", help=explain("spread")),
        "replay": known("replay", "Replay, µs", "%.1f", f"{explain('cuda-graph replay')} Median. {why}"),
        "peak_mb": known("peak_mb", "Peak memory, MB", "%.1f", f"{explain('peak memory')} {why}"),
        "error": known("error", "Numeric error", "%.1e", f"{explain('numeric error')} {why}"),
        "compiles": number("Compiles", help=f"{explain('cold compile')} How many of them this run holds."),
        "compile_s": number("Slowest, s", format="%.2f", help="First call of the slowest of its cold compiles."),
        "clock": text("SM clock", help=f"{explain('clocks')} Right before and after the profile."),
    }
