"""The parts of a run on a page: headline numbers, kernel times, compiles, code, and everything it stands on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.analysis.compiles import KernelDraws, draws_by_kernel, sentence
from core.analysis.families import FAMILIES, decode_gemm_name
from core.analysis.fused import fused
from core.analysis.headline import Headline
from core.analysis.kernels import kernel_table
from core.analysis.operators import operator_table
from core.analysis.spread import spread
from core.charts.kernels import kernel_times
from core.charts.lottery import Draw, lottery
from core.glossary import explain
from core.store import runfile
from core.store.entry import Entry
from core.store.manifest import Compile, Manifest
from core.trace import Tables
from core.ui import chrome, download, words

_FAMILY_TITLES = {key: title for key, title, _ in FAMILIES} | {"op": "Operator"}
_CHART_ROWS_MAX = 24
_NO_KERNELS = "no kernel of these steps is in the profile"


def run_draws(manifest: Manifest) -> tuple[KernelDraws, ...]:
    return draws_by_kernel(
        [
            (kernel.name, _process(one), kernel.chosen, kernel.true_us)
            for one in manifest.compiles
            for kernel in one.kernels
        ]
    )


def headline(manifest: Manifest, found: Headline) -> None:
    """The numbers a run is told by, each with its spread, its n and how it was taken."""
    step = words.spread_of(manifest.step_us)
    how = manifest.step_us.how if manifest.step_us else "not measured"
    first, second = st.columns(4), st.columns(4)
    _metric(
        first[0],
        "Step, unprofiled",
        words.time(step.median if step else None),
        words.range_and_n(step) if step else "not measured",
        f"{explain('step time')} {explain('unprofiled')} Median; {words.plain(how)}.",
    )
    on_gpu = manifest.device.kind == "gpu"
    if on_gpu:
        _gpu_metrics(manifest, found, (*first[1:], *second[:3]))
    _metric(second[3] if on_gpu else first[1], "Numeric error", *_error(manifest))
    over = spread([one.kernel_time_us.median for one in manifest.compiles if one.kernel_time_us])
    if over is not None and over.n > 1:
        st.caption(
            f"Kernel time a step over {over.n} cold compiles of the same code: {words.time(over.min)} to "
            f"{words.time(over.max)}. One compile is shown here; [Compiles](#compiles) has them all."
        )


def _gpu_metrics(manifest: Manifest, found: Headline, places: Sequence[DeltaGenerator]) -> None:
    """What only a run on a GPU has."""
    time, count = found.kernel_time_us, found.kernels_per_step
    replay = words.spread_of(manifest.graph_replay_us)
    of_each = f"in each of {found.steps} steps" if count else "the steps differ" if time else _NO_KERNELS
    _metric(
        places[0],
        "Kernel time a step",
        words.time(time.median if time else None),
        words.range_and_n(time) if time else _NO_KERNELS,
        f"{explain('kernel time')} Median over the profiled steps. Copies and fills are not in it.",
    )
    _metric(
        places[1],
        "Kernels a step",
        words.UNKNOWN if count is None else str(count),
        of_each,
        explain("kernel") + " Fills (Memset) and copies are not counted.",
    )
    _metric(
        places[2],
        "GPU busy",
        words.percent(found.busy_share),
        f"of the {found.busy_of} step" if found.busy_of else _NO_KERNELS,
        f"{explain('gpu busy')} Computed: median busy time (profiled) over the median unprofiled step, or over the profiled "
        "one where that was shorter, for then it ran at higher clocks.",
    )
    _metric(
        places[3],
        "CUDA-graph replay",
        words.time(replay.median if replay else None),
        words.range_and_n(replay) if replay else "not captured",
        f"{explain('cuda-graph replay')} {words.plain(manifest.graph_replay_why or '')}",
    )
    _metric(
        places[4],
        "Peak memory",
        words.memory(manifest.peak_memory_bytes),
        "allocated by PyTorch" if manifest.peak_memory_bytes is not None else "not measured",
        explain("peak memory"),
    )
    _metric(
        places[5],
        "SM clock",
        words.clock_range(manifest.window_clocks),
        words.throttle(manifest.window_clocks),
        f"{explain('clocks')} {explain('throttling')} Read right before and after the profiled window.",
    )


def _metric(column: DeltaGenerator, label: str, value: str, note: str, help_text: str) -> None:
    column.metric(label, value, delta=words.plain(note), delta_color="off", delta_arrow="off", help=help_text)


def _error(manifest: Manifest) -> tuple[str, str, str]:
    help_text = explain("numeric error")
    if not manifest.errors:
        return words.UNKNOWN, "not compared", help_text
    if not all(error.finite for error in manifest.errors):
        return "NaN or infinity", "in the output or a gradient", help_text
    known = [error for error in manifest.errors if error.relative is not None]
    if not known:
        return words.UNKNOWN, "not comparable", help_text
    worst = max(known, key=lambda error: error.relative or 0.0)
    if worst.relative == 0 and len(known) == len(manifest.errors):
        return "0", "bit for bit equal", help_text + " Eager fp32 on the same device is the reference itself."
    return words.UNKNOWN if worst.relative is None else f"{worst.relative:.2g}", f"worst: {worst.of}", help_text


def kernels(entry: Entry, tables: Tables, *, on_gpu: bool) -> None:
    """Time of each kernel as a chart, and the table behind it; of each operator where the run was on a CPU."""
    manifest = entry.manifest
    st.subheader(
        "Kernels" if on_gpu else "Time of each operator",
        anchor="kernels",
        help=explain("kernel" if on_gpu else "operator"),
    )
    left_out = 0
    if on_gpu:
        table = kernel_table(tables)
        across = {draws.kernel: draws.range_text for draws in run_draws(manifest)}
        if across:
            table["across"] = [across.get(name) for name in table["name"]]
        columns = _kernel_columns()
    else:
        parts = ("median", "min", "max", "p25", "p75")
        names = {f"self_{part}_us": f"{part}_us" for part in parts} | {"calls_per_step": "launches_per_step"}
        table = operator_table(tables).rename(columns=names)
        hidden = (table["share"] <= 0.001) & (table["family"] == "op")
        table, left_out = table[~hidden], int(hidden.sum())
        columns = _operator_columns()
    source = words.source_lines([manifest], f"{words.title(manifest.workload)}, n {manifest.workload.steps} steps")
    with st.container(key="kernels-holder"):
        st.plotly_chart(
            kernel_times(
                table.head(_CHART_ROWS_MAX),
                source=source,
                dark=chrome.is_dark(),
                noun="launch" if on_gpu else "call",
            ),
            theme=None,
            key="kernel-times",
            config=download.config("fusionscope-kernels"),
            alt="Median time of each kernel",
        )
    download.row("kernels-holder", table, [entry], name="kernels")
    if len(table) > _CHART_ROWS_MAX:
        st.caption(f"The first {_CHART_ROWS_MAX} of {len(table)}; the table has them all.")
    if left_out:
        st.caption(
            f"{left_out} operators that took less than 0.1% of the time each, and only call others, are left out."
        )
    shown = table.assign(family=[_FAMILY_TITLES.get(key, key) for key in table["family"]])
    if on_gpu:
        shown = shown.assign(decoded=[decode_gemm_name(name) for name in table["name"]])
    st.dataframe(
        shown[[name for name in columns if name in shown]],
        column_config=columns,
        hide_index=True,
        placeholder="–",
        key="kernel-table",
    )


def _kernel_columns() -> dict[str, Any]:
    number = st.column_config.NumberColumn
    text = st.column_config.TextColumn
    return {
        "name": text("Kernel", help=explain("kernel"), width="medium"),
        "family": text("Family", help=explain("family")),
        "launches_per_step": number("Launches a step", help=explain("launch"), format="%g"),
        "n": number("n", help=explain("n")),
        "median_us": number("Median, µs", help=explain("median"), format="%.2f"),
        "across": text("Median over cold compiles", help=explain("compile lottery")),
        "min_us": number("Smallest, µs", help=explain("spread"), format="%.2f"),
        "max_us": number("Largest, µs", help=explain("spread"), format="%.2f"),
        "share": number("Share of GPU time", help=explain("share"), format="percent"),
        "grid": text("Grid", help=explain("grid")),
        "block": text("Block", help=explain("block")),
        "registers": number("Registers a thread", help=explain("registers")),
        "shared_memory_bytes": number("Shared memory, bytes", help=explain("shared memory")),
        "stream": number("Stream", help=explain("stream")),
        "decoded": text("What its name says", help=explain("gemm") + " " + explain("epilogue"), width="large"),
    }


def _operator_columns() -> dict[str, Any]:
    number = st.column_config.NumberColumn
    return {
        "name": st.column_config.TextColumn("Operator", help=explain("operator"), width="large"),
        "family": st.column_config.TextColumn("Family", help=explain("family")),
        "launches_per_step": number("Calls a step", format="%g", help=explain("operator")),
        "n": number("n", help=explain("n")),
        "median_us": number("Self time, median, µs", help=explain("self time"), format="%.2f"),
        "min_us": number("Smallest, µs", help=explain("spread"), format="%.2f"),
        "max_us": number("Largest, µs", help=explain("spread"), format="%.2f"),
        "total_median_us": number("With what it calls, µs", help=explain("self time"), format="%.2f"),
        "share": number("Share of CPU time", help=explain("self time"), format="percent"),
    }


def draws(manifest: Manifest, *, key: str) -> None:
    """Each generated kernel over the run's cold compiles, in a sentence and a chart; `key` tells runs on one page apart."""
    source = words.source_lines(
        [manifest], f"{words.title(manifest.workload)}, n {manifest.workload.steps} steps a compile"
    )
    for kernel in run_draws(manifest):
        st.markdown(f"{words.code(kernel.kernel)}: {words.plain(sentence(kernel))}")
        st.plotly_chart(
            lottery(_draws(manifest, kernel.kernel), source=source, dark=chrome.is_dark()),
            theme=None,
            key=f"lottery-{key}-{kernel.kernel}",
            config=download.config("fusionscope-compiles"),
            alt="True kernel time of each cold compile beside what the tuner saw",
        )


def compiles(manifest: Manifest) -> None:
    """Every cold compile of the run: what it took, chose, and what its kernels cost."""
    told = (
        explain("compile lottery"),
        explain("tuner"),
        explain("launch configuration"),
        explain("xblock"),
        explain("warp"),
    )
    st.subheader("Compiles", help=" ".join(told), anchor="compiles")
    draws(manifest, key="run")
    if not run_draws(manifest):
        st.caption(
            "Inductor tuned no kernel here: there was nothing to fuse."
            if manifest.device.kind == "gpu"
            else "On a CPU Inductor generates C++, and has no launch configurations to choose from."
        )
    rows = [
        {
            "compile": f"{index} of {len(manifest.compiles)}{' (shown)' if one.shown else ''}",
            "process": _process(one),
            "first_call_s": one.first_call_s,
            **one.stages_s,
            "kernel_time_us": one.kernel_time_us.median if one.kernel_time_us else None,
            "graph_breaks": one.graph_breaks,
        }
        for index, one in enumerate(manifest.compiles, 1)
    ]
    table = pd.DataFrame(rows)
    if manifest.workload.passes == "fwd":
        table = table.drop(columns="backward", errors="ignore")
    second = st.column_config.NumberColumn
    st.dataframe(
        table,
        hide_index=True,
        placeholder=words.UNKNOWN,
        key="compiles-table",
        column_config={
            "compile": st.column_config.TextColumn("Cold compile", help=explain("cold compile")),
            "process": st.column_config.TextColumn("In", help=explain("fresh process") + " " + explain("warm worker")),
            "first_call_s": second("First call, s", format="%.2f", help="Until the first step was done."),
            "dynamo_total": second(
                "Dynamo, all in, s", format="%.2f", help="With all it calls, forward; as PyTorch's own metrics say."
            ),
            "aot_autograd": second(
                "AOTAutograd, all in, s", format="%.2f", help="Part of Dynamo's: traces forward and backward."
            ),
            "inductor": second(
                "Inductor, s", format="%.2f", help="Within it, and once more for a backward: plans and writes code."
            ),
            "kernel_compile": second(
                "Kernels, s", format="%.2f", help="Part of Inductor's: waiting for Triton or the C++ compiler."
            ),
            "backward": second("Backward, s", format="%.2f", help="Compiling the backward graph."),
            "kernel_time_us": second("Kernel time a step, µs", format="%.1f", help=explain("kernel time")),
            "graph_breaks": second("Graph breaks", help="How often Dynamo had to give up capturing and start anew."),
        },
    )


def _process(one: Compile) -> str:
    return {"fresh": "fresh process", "first": "worker's first"}.get(one.process, "warm worker")


def _draws(manifest: Manifest, name: str) -> list[Draw]:
    draws = []
    for index, one in enumerate(manifest.compiles, 1):
        for kernel in one.kernels:
            if kernel.name == name:
                true = kernel.true_us
                draws.append(
                    Draw(
                        label=f"{index}, {_process(one)}{', shown' if one.shown else ''}",
                        kernel=name,
                        chosen=kernel.chosen or "configuration unknown",
                        true_us=true.median if true else None,
                        low_us=true.min if true else None,
                        high_us=true.max if true else None,
                        seen=tuple((c.config, c.tuner_us) for c in kernel.candidates if c.tuner_us is not None),
                    )
                )
    return draws


def code(entry: Entry) -> None:
    """What was fused, and the code that Inductor wrote for it."""
    manifest = entry.manifest
    st.subheader("What was fused", help=explain("provenance"), anchor="code")
    found = fused([(s.kernel, s.language, s.aten_ops, s.source_nodes) for s in manifest.sources])
    for one in found:
        if not one.computes:
            st.markdown(
                f"{words.code(one.kernel)}: which operators it computes is unknown.",
                help="PyTorch keeps no record of it for C++ kernels of a backward graph.",
            )
            continue
        reads = f", and reads the results of {_code(one.reads)}" if one.reads else ""
        st.markdown(
            f"{words.code(one.kernel)} computes {_code(one.computes)}{reads}.",
            help=f"As Inductor lowered it: {_code(one.lowered)}",
        )
    if not found:
        st.caption("No kernel was generated: every operator has a library kernel of its own.")
    try:
        sources = runfile.read_code(entry.path)
    except runfile.RunFileError as error:
        st.caption(words.plain(f"The generated code is unknown: {error}"))
        return
    for name, text in sources.items():
        with st.expander(f"Inductor's code, {words.plain(name)} ({len(text.splitlines())} lines)"):
            st.code(text, language="python", line_numbers=True, height=520)


def _code(names: tuple[str, ...]) -> str:
    return ", ".join(words.code(name) for name in names)
