"""Which part of the layer each piece of a step's work does, whoever does it: what runs of several backends are compared by.

Matrix products take the layer's matmul roles in the order in which the step starts them; every other kernel takes the
layer's other role. Copies, fills and the backward pass have roles of their own: nothing in a trace says which of the
layer's matrix products a backward one belongs to.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from core.analysis.families import family, operator_family
from core.analysis.groups import enclosing, names_of, step_annotations
from core.analysis.spread import Spread, spread
from core.roles import BACKWARD_MATMUL, BACKWARD_OTHER, EXTRA_ROLES, Role
from core.trace import GPU_WORK, Tables, codes, column, kind_mask

_AUTOGRAD = "autograd::engine::evaluate_function"


@dataclass(frozen=True)
class RoleTime:
    """A role over the profiled steps: which kernels do it, how many a step, and their summed time a step in µs."""

    role: Role
    kernels: tuple[str, ...]
    per_step: float
    time_us: Spread


def work(tables: Tables, roles: Sequence[Role], *, on_gpu: bool) -> pd.DataFrame:
    """One row a piece of work of the profiled steps, by start: row (of the event), step, start_ns, dur_ns, name, family,
    role (its name). On a GPU: kernels, copies and fills; of a CPU run: the operators that do the work, each with what it
    calls.
    """
    events = tables.events
    step, start_ns, dur_ns = column(events, "step"), column(events, "start_ns"), column(events, "dur_ns")
    wanted = kind_mask(events, *(GPU_WORK if on_gpu else ("op",))) & (step >= 0) & (dur_ns >= 0)
    rows = np.flatnonzero(wanted)
    names = names_of(tables, rows)
    kind_codes, kinds = codes(events, "kind")
    if on_gpu:
        families = [family(name, kinds[kind_codes[row]]) for name, row in zip(names, rows.tolist(), strict=True)]
    else:
        families = [operator_family(name) for name in names]
        working = np.zeros(events.num_rows, bool)
        working[rows] = [key != "op" for key in families]
        # An operator that does its work by calling another one counts once.
        inner = enclosing(column(events, "parent"), working) >= 0
        own = [index for index, row in enumerate(rows.tolist()) if working[row] and not inner[row]]
        rows, names, families = rows[own], [names[i] for i in own], [families[i] for i in own]
    backward = _is_backward(tables, rows)
    found = pd.DataFrame(
        {
            "row": rows,
            "step": step[rows],
            "start_ns": start_ns[rows],
            "dur_ns": dur_ns[rows],
            "name": names,
            "family": families,
            "role": [""] * len(rows),
        }
    )
    for number in step_annotations(tables):
        of_step = np.flatnonzero(found["step"].to_numpy() == number)
        told = _roles([_kind_of_work(families[i], names[i]) for i in of_step], backward[of_step].tolist(), roles)
        found.loc[of_step, "role"] = told
    return found


def role_times(found: pd.DataFrame, roles: Sequence[Role]) -> tuple[RoleTime, ...]:
    """The roles of `work` in the layer's order, each with its kernels and its time a step; roles that nothing does are left
    out."""
    steps = sorted(set(found["step"]))
    times = []
    for role in (*roles, *EXTRA_ROLES):
        own = found[found["role"] == role.name]
        if own.empty:
            continue
        sums = own.groupby("step")["dur_ns"].sum().reindex(steps, fill_value=0).to_numpy() / 1000
        told = spread(sums)
        assert told is not None  # there is at least one step, or there would be no row
        times.append(RoleTime(role, tuple(dict.fromkeys(own["name"])), len(own) / len(steps), told))
    return tuple(times)


def _kind_of_work(key: str, name: str) -> str:
    """The family, but for kernels that copy within the layer: a change of number format is the layer's own work. What
    copies inputs for a CUDA graph (a multi-tensor kernel) or memory as it is (Memcpy) is not."""
    return "other" if key == "copy" and not name.startswith("Memcpy") and "multi_tensor" not in name else key


def _roles(families: Sequence[str], backward: Sequence[bool], roles: Sequence[Role]) -> list[str]:
    products = iter([role.name for role in roles if role.matmul])
    other = next((role.name for role in roles if not role.matmul), None)
    last_product = next((role.name for role in reversed(roles) if role.matmul), None)
    told = []
    for key, is_backward in zip(families, backward, strict=True):
        if key in ("copy", "fill"):
            told.append(key)
        elif is_backward:
            told.append(BACKWARD_MATMUL.name if key == "gemm" else BACKWARD_OTHER.name)
        elif key == "gemm" and last_product is not None:
            told.append(next(products, last_product))
        else:
            told.append(other or last_product or "")
    return told


def _is_backward(tables: Tables, rows: np.ndarray) -> np.ndarray:
    """Whether autograd's engine stands above each piece of work, or above what launched it."""
    events = tables.events
    parent, launch = column(events, "parent"), column(events, "launch")
    name_codes, names = codes(events, "name")
    engine = np.array([name.startswith(_AUTOGRAD) for name in names], bool)
    inside = engine[name_codes] if len(names) else np.zeros(events.num_rows, bool)
    # Parents start before their children, and events are sorted by start: one pass carries the mark down.
    for row in range(len(parent)):
        if parent[row] >= 0 and inside[parent[row]]:
            inside[row] = True
    caller = np.where(launch[rows] >= 0, launch[rows], rows)
    return inside[caller]
