"""Several backends of one layer on one time axis, with remarks computed from them and the table behind the chart."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import streamlit as st
from pandas.api.types import is_numeric_dtype

from core.analysis.remarks import remarks
from core.analysis.spread import Spread
from core.analysis.stack import (
    Setting,
    StackedRun,
    all_roles,
    counted,
    gaps_of_the_profiler,
    one_step,
    stacked_run,
    step_count,
    unlike,
)
from core.charts.stack import Lane, stack
from core.glossary import explain
from core.roles import Role
from core.store.entry import Entry
from core.store.manifest import PROTOCOL
from core.store.runfile import RunFileError
from core.trace import Tables, TraceError
from core.ui import chrome, details, download, session, views, words
from core.ui.timeline import index_of_step
from core.workload import backend_of, layer_of

_HOLDER = "stack-holder"


@st.cache_resource(max_entries=128, show_spinner=False)
def _run(path: Path, stamp: str, _entry: Entry, _tables: Tables) -> StackedRun:
    manifest = _entry.manifest
    workload = manifest.workload
    setting = Setting(
        device=words.device(manifest.device),
        versions=words.versions(manifest),
        on_gpu=manifest.device.kind == "gpu",
        clocks_mhz=tuple(sample.sm_mhz for sample in manifest.window_clocks if sample.sm_mhz is not None),
        held_down=words.throttle(manifest.window_clocks) if manifest.throttled else None,
        is_settled=manifest.status != "unsettled",
        is_right=details.mismatch_of(manifest) is None,
        is_of_protocol=manifest.protocol.version == PROTOCOL,
    )
    return stacked_run(
        words.backend(workload),
        _tables,
        layer_of(workload).roles,
        setting=setting,
        fuses=backend_of(workload).fuses,
        step_us=_entry.head.step_us,
        replay_us=_entry.head.graph_replay_us,
        compiles=views.run_draws(manifest),
    )


def show(entries: Sequence[Entry], wanted: str | None) -> None:
    """Draws the stack of these runs; `wanted` is the step that the link asks for."""
    found = [(entry, run) for entry in entries if (run := _read(entry)) is not None]
    if not found:
        return
    runs = [run for _, run in found]
    first = found[0][0]
    roles = layer_of(first.head.workload).roles
    st.subheader("One step, side by side", help=f"{explain('role')} {explain('step')}", anchor="stack")
    for sentence in unlike(runs):
        st.warning(words.plain(sentence), icon=":material/warning:")
    on_gpu = all(run.setting.on_gpu for run in runs)
    step = index_of_step(wanted, min(map(step_count, runs)))
    source = words.source_lines(
        [entry.manifest for entry, _ in found],
        f"{words.layer(first.head.workload)}, {words.picked(first.head.workload)}; step {step + 1} of {step_count(runs[0])}",
    )
    figure = stack(
        [_lane(run, step) for run in runs],
        all_roles(roles),
        axis=f"time, µs from the step's first {'GPU work' if on_gpu else 'work'} (profiled)",
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
    download.row(_HOLDER, table, [entry for entry, _ in found], name="stack", units=_units(roles))
    st.dataframe(
        table.drop(columns=["run"]),
        column_config=_columns(roles, table, on_gpu=on_gpu),
        hide_index=True,
        placeholder="–",
        key="stack-table",
    )


def _read(entry: Entry) -> StackedRun | None:
    """A run's work; a sentence on the page where it has none that can be drawn."""
    name = words.backend(entry.head.workload)
    try:
        tables = session.tables(entry)
    except (TraceError, RunFileError) as error:
        st.error(words.plain(f"{name}: the trace of this run cannot be shown: {error}"))
        return None
    run = None if tables is None else _run(entry.path, entry.stamp, entry, tables)
    if run is None or run.work.empty:
        st.info(words.plain(f"{name}: the profile of this run holds no work of its steps, so it has no lane below."))
        return None
    return run


def _lane(run: StackedRun, step: int) -> Lane:
    drawn = one_step(run, step)
    median = f"median {words.time(run.work_us.median)}" if run.work_us else ""
    return Lane(
        title=run.title,
        note=", ".join(counted(drawn, "kernel" if run.setting.on_gpu else "operator")),
        total=f"{median}<br>  <span style='font-size:12px'>{words.range_and_n(run.work_us)}</span>",
        step=drawn,
    )


def _table(found: Sequence[tuple[Entry, StackedRun]], roles: Sequence[Role]) -> pd.DataFrame:
    rows = []
    for entry, run in found:
        head = entry.head
        row: dict[str, Any] = {"backend": run.title}
        row |= {role.name: _median(one.time_us if (one := run.time_of(role)) else None) for role in all_roles(roles)}
        row |= {
            "work": _median(run.work_us),
            "n": run.work_us.n if run.work_us else None,
            "step": _median(head.step_us),
            "step_range": words.range_and_n(head.step_us),
            "replay": _median(head.graph_replay_us),
            "peak_mb": head.peak_memory_bytes / 1e6 if head.peak_memory_bytes is not None else None,
            "error": head.error,
            "compiles": head.n_compiles,
            "compile_s": max((one.first_call_s for one in entry.manifest.compiles), default=None),
            "clock": words.clock_range(entry.manifest.window_clocks),
            "run": head.id,
        }
        rows.append(row)
    table = pd.DataFrame(rows)
    for name, form in (("step", "{:.1f}"), ("replay", "{:.1f}"), ("peak_mb", "{:.4g}"), ("error", "{:.1e}")):
        if table[name].isna().any():  # an empty cell of a role or a compile says "none", of these it would hide a gap
            table[name] = [words.UNKNOWN if pd.isna(value) else form.format(value) for value in table[name]]
    unused = [role.name for role in all_roles(roles) if table[role.name].isna().all()]
    if all(entry.head.device.kind == "cpu" for entry, _ in found):
        unused += ["replay", "peak_mb", "clock"]  # a CPU has none of these
    if not table["compiles"].any():
        unused += ["compiles", "compile_s"]
    return table.drop(columns=unused)


def _units(roles: Sequence[Role]) -> dict[str, str]:
    return {role.name: f"{role.name}_us" for role in all_roles(roles)} | {
        "work": "work_us",
        "n": "profiled_steps",
        "step": "step_us",
        "replay": "graph_replay_us",
    }


def _median(found: Spread | None) -> float | None:
    return found.median if found else None


def _columns(roles: Sequence[Role], table: pd.DataFrame, *, on_gpu: bool) -> dict[str, Any]:
    number, text = st.column_config.NumberColumn, st.column_config.TextColumn
    taken = "Median over the profiled steps, summed over its kernels; – where the run launches none for it."

    def known(name: str, title: str, form: str, told: str) -> Any:
        """A column of numbers, or of texts where one of them is unknown."""
        is_text = name in table and not is_numeric_dtype(table[name])
        return text(title, help=told) if is_text else number(title, format=form, help=told)

    why = "Where it is unknown, the run's own Details say why."
    return {
        "backend": text("Backend", help=explain("backend")),
        **{
            role.name: number(f"{role.title}, µs", format="%.1f", help=f"{role.help} {taken}")
            for role in all_roles(roles)
        },
        "work": number("GPU work, µs" if on_gpu else "Work, µs", format="%.1f", help=explain("work")),
        "n": number("n", help=f"{explain('n')} Here: profiled steps."),
        "step": known("step", "Step, µs", "%.1f", f"{explain('step time')} Median. {explain('unprofiled')} {why}"),
        "step_range": text("Step, range", help=explain("spread")),
        "replay": known("replay", "Replay, µs", "%.1f", f"{explain('cuda-graph replay')} Median. {why}"),
        "peak_mb": known("peak_mb", "Peak memory, MB", "%.4g", f"{explain('peak memory')} {why}"),
        "error": known("error", "Numeric error", "%.1e", f"{explain('numeric error')} {why}"),
        "compiles": number("Compiles", help=f"{explain('cold compile')} How many of them this run holds."),
        "compile_s": number("Slowest, s", format="%.2f", help="First call of the slowest of its cold compiles."),
        "clock": text("SM clock", help=f"{explain('clocks')} Right before and after the profile."),
    }
