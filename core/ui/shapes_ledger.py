"""The ledger of a sweep on the page: a row a call, with what it compiled, reused or ran eager, and why; and as CSV."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd
import streamlit as st

from core.analysis.recompiles import Compiled, LedgerRow, ledger
from core.glossary import explain
from core.store.manifest import Manifest
from core.ui import download, words
from core.ui.shapes_data import Shown, fixed_sizes, link_to_run

_ROWS_SHOWN = 16


def rows(found: Shown) -> tuple[LedgerRow, ...]:
    """Every call of the sweep, series after series."""
    sweep = found.sweep
    return ledger(found.series, sweep.axes, shared=sweep.mode == "shared", fixed=fixed_sizes(sweep))


def show(found: Shown, wanted: Sequence[LedgerRow], backends: Sequence[str]) -> None:
    """The rows of these backends as a table, those that have nothing to compile last; a picked row opens its run."""
    st.subheader("The ledger: a row a call", anchor="ledger", help=f"{explain('ledger')} {explain('guard')}")
    plain = {one.name for one in found.series if not (one.compiles or one.fuses)}
    chosen = sorted((row for row in wanted if row.series in backends), key=lambda row: row.series in plain)
    if not chosen:
        st.info("No backend is chosen above, so there are no rows.", icon=":material/filter_alt_off:")
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        csv_button(found, "ledger", lambda: csv_frame(chosen))
        place = st.container(width="content")
    table = _frame(chosen, traffic=found.sweep.kind == "traffic", rounds=found.sweep.rounds > 1)
    event: Any = st.dataframe(
        table,
        hide_index=True,
        height=35 * (min(len(table), _ROWS_SHOWN) + 1) + 3,
        column_config=_columns(is_map=found.sweep.kind == "map"),
        placeholder="–",
        on_select="rerun",
        selection_mode="single-row",
        key=f"shapes:ledger:{found.entry.head.id}:{','.join(backends)}",
    )
    picked = [chosen[at] for at in event.selection.rows if at < len(chosen)]
    with place:
        if not picked:
            st.caption("Tick a row to read Dynamo's own words in full, with a link to its timeline.")
        elif picked[0].run_id in found.by_run:
            link_to_run(found, picked[0].run_id)
    for row in picked:
        for one in row.reasons:
            st.markdown(f"{words.plain(one.plain)}. Dynamo: {words.code(one.dynamo)}")
        for reason in row.graph_breaks or ():
            st.markdown(f"Graph break: {words.code(reason)}")


def csv_button(found: Shown, name: str, frame: Any) -> None:
    """A download of a table whose rows carry their run, device and versions: by its column `run`."""
    download.table_button(name, lambda: as_csv(frame(), found), key=f"shapes:csv:{name}")


def as_csv(table: pd.DataFrame, found: Shown) -> bytes:
    """A table as CSV, each row with its device, versions and date by its column `run`."""
    of_run: list[Manifest | None] = [found.by_run[run][0] if run in found.by_run else None for run in table["run"]]
    told = table.assign(
        sweep=found.entry.head.id,
        layer=found.sweep.base.layer,
        device=[one.device.name if one else None for one in of_run],
        driver=[one.device.driver if one else None for one in of_run],
        **{
            name: [one.versions.get(name) if one else None for one in of_run]
            for name in ("torch", "triton", "liger_kernel")
        },
        picked=[words.picked(one.workload) if one else None for one in of_run],
        taken_utc=[one.created if one else None for one in of_run],
    )
    for name in told.select_dtypes(exclude="number"):
        told[name] = [words.cell(value) for value in told[name]]
    return bytes(told.to_csv(index=False).encode())


def _frame(chosen: Sequence[LedgerRow], *, traffic: bool, rounds: bool) -> pd.DataFrame:
    table = pd.DataFrame(
        [
            {
                "call": row.call,
                "backend": row.title,
                "sizes": row.sizes,
                **({"count": row.count} if traffic else {}),
                **({"round": row.round + 1} if rounds else {}),
                "outcome": row.outcome,
                "why": row.why,
                "dynamo": "; ".join(one.dynamo for one in row.reasons) or None,
                "now_dynamic": row.now_dynamic,
                "entry": _entry(row),
                **_stages(row),
                "graph_breaks": len(row.graph_breaks) if row.graph_breaks is not None else None,
                "cuda_graphs": row.cuda_graphs,
                "graph_calls_s": sum(row.graph_calls_s) if row.graph_calls_s else None,
                "jits": "; ".join(f"{jit.kernel} ({_constexprs(jit.constexprs)})" for jit in row.jits or ()) or None,
            }
            for row in chosen
        ]
    )
    empty = [name for name in _DROPPED_WHEN_EMPTY if table[name].isna().all()]
    return table.drop(columns=empty)


def csv_frame(chosen: Sequence[LedgerRow]) -> pd.DataFrame:
    """All of a row, for people who go on with it elsewhere."""
    return pd.DataFrame(
        [
            {
                "run": row.run_id,
                "backend": row.series,
                "call": row.call,
                "round": row.round + 1,
                "sizes": row.sizes,
                "count": row.count,
                "kind": row.kind,
                "outcome": row.outcome,
                "why": row.why,
                "dynamo_words": " | ".join(one.dynamo for one in row.reasons) or None,
                "missed_entries": " ".join(one.entry or "?" for one in row.reasons) or None,
                "now_dynamic": row.now_dynamic,
                "entries_compiled": " ".join(row.forward.entries) if row.forward else None,
                "served_by": " ".join(row.served_by) if row.served_by else None,
                **_stages(row),
                "graph_breaks": " | ".join(row.graph_breaks) if row.graph_breaks else None,
                "cuda_graphs": row.cuda_graphs,
                "graph_calls_s": sum(row.graph_calls_s) if row.graph_calls_s else None,
                "jits": " | ".join(jit.kernel for jit in row.jits) if row.jits else None,
                "jit_s": row.jit_s,
                "compiles_so_far": row.compiles,
                "recompiles_so_far": row.recompiles,
                "backward_compiles_so_far": row.backward_compiles,
                "jits_so_far": row.jits_so_far,
            }
            for row in chosen
        ]
    )


#: Told only where there is something to tell.
_DROPPED_WHEN_EMPTY = (
    "why",
    "dynamo",
    "now_dynamic",
    "backward_s",
    "jits",
    "graph_calls_s",
    "guards",
    "total_s",
    "dynamo_s",
    "aot_autograd_s",
    "inductor_s",
    "kernel_compile_s",
    "disk_cache",
)


def _stages(row: LedgerRow) -> dict[str, Any]:
    forward = row.forward
    return {
        "guards": forward.guard_count if forward else None,
        "first_call_s": row.first_call_s,
        "total_s": forward.total_s if forward else None,
        "dynamo_s": forward.dynamo_s if forward else None,
        "aot_autograd_s": forward.aot_autograd_s if forward else None,
        "inductor_s": forward.inductor_s if forward else None,
        "kernel_compile_s": forward.kernel_compile_s if forward else None,
        "backward_s": _backward_s(row.backward),
        "disk_cache": forward.disk_cache if forward else None,
    }


def _backward_s(backward: Compiled | None) -> float | None:
    if backward is None:
        return None
    return backward.backward_s if backward.backward_s is not None else backward.total_s


def _entry(row: LedgerRow) -> str | None:
    """The entries that the call compiled, or those that served it."""
    entries = row.forward.entries if row.forward else row.served_by
    return ", ".join(entries) if entries else None


def _constexprs(found: dict[str, str]) -> str:
    return ", ".join(f"{name} {value}" for name, value in found.items())


def call_column() -> Any:
    """The column of the calls' numbers."""
    return st.column_config.NumberColumn("Call", help="Its place in the list, from 1.", width="small")


def _columns(*, is_map: bool) -> dict[str, Any]:
    number, text = st.column_config.NumberColumn, st.column_config.TextColumn

    def second(title: str, told: str) -> Any:
        return number(title, format="%.3g", help=told)

    once = "PyTorch's own metrics of the compiles that this call set off; empty where it set off none."
    return {
        "call": call_column(),
        "backend": text("Backend", help=explain("backend"), width=165),
        "sizes": text("Size", help="What changes; the rest stands above.", width=210 if is_map else 130),
        "count": number("Count", help=explain("traffic")),
        "round": number("Round", help="Each cell is measured in rounds, all backends in turn.", width="small"),
        "outcome": text(
            "Outcome", help=f"{explain('recompile')} {explain('reuse')} {explain('recompile limit')}", width=190
        ),
        "why": text("Why", help=f"{explain('guard')} Put plainly, from Dynamo's own words.", width="large"),
        "dynamo": text("In Dynamo's words", help="The guard that failed, as PyTorch logs it.", width="medium"),
        "now_dynamic": text("Now dynamic", help=explain("dynamic shapes")),
        "entry": text("Entry", help=explain("cache entry"), width="small"),
        "guards": number("Guards", help=f"{explain('guard')} How many the new entry has.", width="small"),
        "first_call_s": second(
            "First call, s", "Wall time of the first call of this size, with what it compiled. n 1."
        ),
        "total_s": second("Compile, s", f"All of the compiling. {once}"),
        "dynamo_s": second("Dynamo, all in, s", f"With all it calls. {once}"),
        "aot_autograd_s": second("AOTAutograd, all in, s", f"Part of Dynamo's: traces forward and backward. {once}"),
        "inductor_s": second("Inductor, s", f"{explain('inductor')} {once}"),
        "kernel_compile_s": second("Kernels, s", f"Part of Inductor's: waiting for Triton or the C++ compiler. {once}"),
        "backward_s": second("Backward, s", f"Compiling the backward graph. {once}"),
        "disk_cache": text("Disk cache", help=explain("disk cache"), width="small"),
        "graph_breaks": number("Graph breaks", help=explain("graph break"), width="small"),
        "cuda_graphs": number("CUDA graphs", help=explain("recorded graph"), width="small"),
        "graph_calls_s": second(
            "Recording, s", "Wall time of the calls after the first that recorded CUDA graphs. n 1."
        ),
        "jits": text("Triton JIT", help=f"{explain('jit')} {explain('constexpr')}"),
    }
