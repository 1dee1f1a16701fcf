"""The operator table: where CPU time goes, each op without the ops it called, and the GPU time it brought about."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from core.analysis.families import operator_family
from core.analysis.groups import enclosing, groups, step_annotations
from core.analysis.kernels import times
from core.trace import GPU_WORK, Tables, codes, column, kind_mask

COLUMNS = (
    "name", "family", "calls_per_step", "n", "self_median_us", "self_min_us", "self_max_us", "self_p25_us", "self_p75_us",
    "self_sum_us", "total_median_us",
    "share", "launches", "self_step_us", "total_step_us", "device_self_step_us", "device_total_step_us",
    "input_dims", "input_strides",
)  # fmt: skip
#: Matrix products by the position of their second matrix among the inputs.
_PRODUCTS = {"aten::mm": 1, "aten::addmm": 2}
_VIEW = "aten::t"
# What a view returned is used soon; looking further would cost a long trace without strides of this kind much time.
_PRODUCTS_LOOKED_AT = 8


def operator_table(tables: Tables, *, step: int | None = None, by_shapes: bool = False) -> pd.DataFrame:
    """One row per op name, by the sum of self time (duration minus that of the ops directly inside), largest first.

    Times in us. Median, extremes and sum are over all n calls of the trace, in a step or not. calls_per_step, launches
    (kernels it launched itself) and the *_step_us are means over the profiled steps, NaN where the trace has none.
    device_* is GPU work (copies and fills too) that it launched itself, or with the ops it called: NaN where the trace
    has no GPU work, or work without a duration. input_dims and input_strides are those of all calls, "3 different"
    where they differ, None where the trace has none. share is of all self time. step: only the ops of that step.
    by_shapes: one row per name and input_dims. An op that is all that one of its own name called counts with it, as in
    PyTorch's own tables. Ops without a duration are left out.
    """
    events = tables.events
    event_step, dur_ns = column(events, "step"), column(events, "dur_ns")
    name_codes, names = codes(events, "name")
    is_op = kind_mask(events, "op") & (dur_ns >= 0)
    above = enclosing(column(events, "parent"), is_op)
    call = _calls(above, is_op, name_codes)
    is_op &= call == np.arange(len(call))
    above = np.where(above >= 0, call[above], -1)
    self_ns = dur_ns.copy()
    inner = np.flatnonzero(is_op & (above >= 0))
    np.subtract.at(self_ns, above[inner], dur_ns[inner])
    # Whole-microsecond files can give children a little more time than their parent.
    self_ns = np.maximum(self_ns, 0)

    in_steps = event_step >= 0 if step is None else event_step == step
    op = column(events, "op")
    launched = np.bincount(call[op[kind_mask(events, "kernel") & (op >= 0)]], minlength=len(dur_ns))
    device_self_us, device_total_us = _device_us(tables, call, above)
    n_steps = len(step_annotations(tables)) if step is None else 1
    rows = np.flatnonzero(is_op if step is None else is_op & in_steps)
    inputs = {name: codes(events, name) for name in ("input_dims", "input_strides")}
    keys = (name_codes[rows], inputs["input_dims"][0][rows]) if by_shapes else (name_codes[rows],)
    total_us = self_ns[rows].sum() / 1000

    def a_step(values: np.ndarray) -> float:
        return float(values.sum() / n_steps) if n_steps else np.nan

    table = []
    for part in groups(*keys):
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
                "launches": a_step(launched[inside]),
                "self_step_us": a_step(self_ns[inside] / 1000),
                "total_step_us": a_step(dur_ns[inside] / 1000),
                "device_self_step_us": a_step(device_self_us[inside]),
                "device_total_step_us": a_step(device_total_us[inside]),
                **{name: _common(coded[own], texts) for name, (coded, texts) in inputs.items()},
            }
        )
    table.sort(key=lambda row: -row["self_sum_us"])
    return pd.DataFrame(table, columns=list(COLUMNS))


def _calls(above: np.ndarray, is_op: np.ndarray, name: np.ndarray) -> np.ndarray:
    """Per event row the call it counts to: itself, or, for an op that is all that one of its own name called, that one.

    aten::sum(x) calls aten::sum.IntList, which the profiler writes down as aten::sum as well; its own tables count one.
    """
    inner = np.flatnonzero(is_op & (above >= 0))
    n_inner = np.bincount(above[inner], minlength=len(above))
    same = inner[(name[inner] == name[above[inner]]) & (n_inner[above[inner]] == 1)]
    call = np.arange(len(above))
    # Rows are sorted by start, so that the outer call is settled before the one inside it.
    for row in same.tolist():
        call[row] = call[above[row]]
    return call


def _device_us(tables: Tables, call: np.ndarray, above: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Per event row the GPU time (us) an op launched itself, and with the ops it called."""
    events = tables.events
    n = events.num_rows
    work = np.flatnonzero(kind_mask(events, *GPU_WORK))
    if not len(work):
        return np.full(n, np.nan), np.full(n, np.nan)
    dur_ns, op = column(events, "dur_ns")[work], column(events, "op")[work]
    time_us = np.where(dur_ns >= 0, dur_ns / 1000, np.nan)[op >= 0]
    owner = call[op[op >= 0]]
    own = np.bincount(owner, time_us, minlength=n)
    total = own.copy()
    while len(owner):
        owner = above[owner]
        time_us, owner = time_us[owner >= 0], owner[owner >= 0]
        total += np.bincount(owner, time_us, minlength=n)
    return own, total


def _common(found: np.ndarray, texts: list[str]) -> str | None:
    different = np.unique(found)
    if len(different) > 1:
        return f"{len(different)} different"
    return texts[different[0]] if different[0] >= 0 else None


@dataclass(frozen=True)
class Transposed:
    """A view and the matrix product that read what it returned: `view` read strides `before`, `product` reads `after`.

    `launched` counts the GPU work that the view brought about, None where the trace has no GPU work at all.
    """

    view: str
    product: str
    before: tuple[int, ...]
    after: tuple[int, ...]
    launched: int | None


def transposed(tables: Tables) -> Transposed | None:
    """The first aten::t whose result a matrix product below the same op reads, told by swapped sizes and strides; of
    the first step, where the trace has steps. None where the trace has no such pair, or no strides."""
    events = tables.events
    step = column(events, "step")
    name_codes, names = codes(events, "name")
    dims, dims_texts = codes(events, "input_dims")
    strides, strides_texts = codes(events, "input_strides")
    is_op = kind_mask(events, "op") & (dims >= 0) & (strides >= 0)
    if (step >= 0).any():
        is_op &= step == step[step >= 0].min()

    def named(wanted: set[str]) -> list[int]:
        return np.flatnonzero(is_op & np.isin(name_codes, [names.index(one) for one in wanted & set(names)])).tolist()

    def inputs(row: int, position: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        return argument(dims_texts[dims[row]], position), argument(strides_texts[strides[row]], position)

    products = named(set(_PRODUCTS))
    if not products:
        return None
    above = enclosing(column(events, "parent"), kind_mask(events, "op"))
    track = column(events, "track")
    for view in named({_VIEW}):
        sizes, before = inputs(view, 0)
        after = int(np.searchsorted(products, view))
        for product in products[after : after + _PRODUCTS_LOOKED_AT]:
            name = names[name_codes[product]]
            if (
                len(sizes) == 2
                and track[product] == track[view]
                and inputs(product, _PRODUCTS[name]) == (sizes[::-1], before[::-1])
                and _is_below(product, int(above[view]), above)
            ):
                return Transposed(_VIEW, name, before, before[::-1], _launched_below(tables, view, above))
    return None


def sentence(found: Transposed) -> str:
    """What a view does, in words."""
    did = "moved no data"
    if found.launched == 0:
        did += " and launched no kernel"
    elif found.launched:
        did = f"launched {found.launched} piece{'' if found.launched == 1 else 's'} of GPU work"
    return (
        f"{found.view} reads strides {found.before} and {found.product} reads {found.after} from what it returned: "
        f"{found.view} {did}."
    )


def argument(text: str, position: int) -> tuple[int, ...]:
    """The numbers of one input in a text of input_dims or input_strides; none for what is no tensor, or a list."""
    parts = text[1:-1].split("] [")
    if position >= len(parts) or not parts[position] or "[" in parts[position]:
        return ()
    return tuple(int(number) for number in parts[position].split(", "))


def _is_below(row: int, outer: int, above: np.ndarray) -> bool:
    # An op stands after those around it, so climbing ends at `outer` or above it.
    while row > outer:
        row = int(above[row])
    return row == outer


def _launched_below(tables: Tables, row: int, above: np.ndarray) -> int | None:
    events = tables.events
    work = np.flatnonzero(kind_mask(events, *GPU_WORK))
    if not len(work):
        return None
    owners = column(events, "op")[work]
    return sum(_is_below(owner, row, above) for owner in owners[owners >= row].tolist())
