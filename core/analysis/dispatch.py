"""The dispatch tree of a step: which op called which, and what each launched on the GPU."""

from dataclasses import dataclass

import numpy as np

from core.analysis.families import family
from core.analysis.groups import enclosing, step_annotations
from core.trace import GPU_WORK, Tables, codes, column, kind_mask


@dataclass(frozen=True)
class Launched:
    """One piece of GPU work and the call that launched it; kernel_us is None where the trace has no duration."""

    launch_row: int
    launch_name: str
    kernel_row: int
    kernel_name: str
    kernel_us: float | None
    family: str
    kind: str


@dataclass(frozen=True)
class Node:
    """An op or an annotation; start_us counts from the start of the trace.

    input_dims and input_strides are the table's texts, one bracket an input; None where the trace has none.
    """

    row: int
    name: str
    kind: str
    start_us: float
    dur_us: float | None
    children: tuple["Node", ...]
    launched: tuple[Launched, ...]
    input_dims: str | None
    input_strides: str | None


def dispatch_tree(tables: Tables, step: int) -> tuple[Node, ...]:
    """The ops and annotations of a step as trees, roots by start: the step itself, then other threads (backward).

    GPU work hangs on the innermost node around its launch; what was launched outside any, on the step's annotation.
    Empty when the trace has no such step.
    """
    events = tables.events
    name_codes, names = codes(events, "name")
    kind_codes, kinds = codes(events, "kind")
    start_ns, dur_ns = column(events, "start_ns"), column(events, "dur_ns")
    inputs = {name: codes(events, name) for name in ("input_dims", "input_strides")}
    is_node = kind_mask(events, "op", "annotation")
    in_step = column(events, "step") == step
    above = enclosing(column(events, "parent"), is_node)

    launch = column(events, "launch")
    fallback = int(step_annotations(tables).get(step, np.array([-1]))[0])
    launched: dict[int, list[Launched]] = {}
    for row in np.flatnonzero(in_step & kind_mask(events, *GPU_WORK)).tolist():
        call = int(launch[row])
        owner = int(above[call]) if above[call] >= 0 and in_step[above[call]] else fallback
        name, kind = names[name_codes[row]], kinds[kind_codes[row]]
        launched.setdefault(owner, []).append(
            Launched(
                launch_row=call,
                launch_name=names[name_codes[call]],
                kernel_row=row,
                kernel_name=name,
                kernel_us=float(dur_ns[row] / 1000) if dur_ns[row] >= 0 else None,
                family=family(name, kind),
                kind=kind,
            )
        )

    roots: list[Node] = []
    children: dict[int, list[Node]] = {}
    # Events are sorted by start, so a child comes after its parent: from the last one on, every child is ready.
    for row in np.flatnonzero(in_step & is_node)[::-1].tolist():
        node = Node(
            row=row,
            name=names[name_codes[row]],
            kind=kinds[kind_codes[row]],
            start_us=float(start_ns[row] / 1000),
            dur_us=float(dur_ns[row] / 1000) if dur_ns[row] >= 0 else None,
            children=tuple(reversed(children.pop(row, []))),
            launched=tuple(launched.get(row, [])),
            **{name: texts[found[row]] if found[row] >= 0 else None for name, (found, texts) in inputs.items()},
        )
        parent = int(above[row])
        (children.setdefault(parent, []) if parent >= 0 and in_step[parent] else roots).append(node)
    return tuple(reversed(roots))


def rows(tree: tuple[Node, ...]) -> list[tuple[int, Node]]:
    """The tree from top to bottom as (level, node); roots have level 0."""
    found: list[tuple[int, Node]] = []
    waiting = [(0, node) for node in reversed(tree)]
    while waiting:
        level, node = waiting.pop()
        found.append((level, node))
        waiting += [(level + 1, child) for child in reversed(node.children)]
    return found
