"""Who encloses whom on a thread, which call launched which GPU work, and in which step."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Nesting:
    """Per event: parent (row or -1), depth (0 = outermost), op (row of the innermost enclosing op or -1)."""

    parent: np.ndarray
    depth: np.ndarray
    op: np.ndarray


def nesting(
    start_ns: np.ndarray, end_ns: np.ndarray, track: np.ndarray, is_op: np.ndarray, is_leaf: np.ndarray
) -> Nesting:
    """Nesting of events, which are sorted by (start, -duration).

    An event encloses another when the other starts inside it and ends no later. A leaf (a runtime call, whose clock is
    not that of the ops) that sticks out of an op neither belongs to it nor ends it for the events that follow.
    """
    n = len(start_ns)
    starts, ends, tracks = start_ns.tolist(), end_ns.tolist(), track.tolist()
    ops, leaves = is_op.tolist(), is_leaf.tolist()
    parent, depth, op = [-1] * n, [0] * n, [-1] * n
    stacks: dict[int, list[int]] = {}
    for row in range(n):
        stack = stacks.setdefault(tracks[row], [])
        start, end = starts[row], ends[row]
        while stack and ends[stack[-1]] <= start:
            stack.pop()
        above = len(stack) - 1
        while above >= 0 and ends[stack[above]] < end:
            above -= 1
        if above >= 0:
            outer = stack[above]
            parent[row] = outer
            depth[row] = depth[outer] + 1
            op[row] = outer if ops[outer] else op[outer]
        if above == len(stack) - 1:
            stack.append(row)
        elif not leaves[row]:
            # What it overlaps can enclose nothing later that this event does not enclose more closely.
            del stack[above + 1 :]
            stack.append(row)
    return Nesting(np.array(parent, np.int32), np.array(depth, np.int32), np.array(op, np.int32))


def launch_rows(correlation: np.ndarray, known: np.ndarray, is_launch: np.ndarray, is_work: np.ndarray) -> np.ndarray:
    """Per event the row of the call that launched it: the first launch with the same correlation id, else -1."""
    found = np.full(len(correlation), -1, np.int32)
    launches = np.flatnonzero(is_launch & known)
    work = np.flatnonzero(is_work & known)
    if not len(launches) or not len(work):
        return found
    launches = launches[np.argsort(correlation[launches], kind="stable")]
    ids = correlation[launches]
    at = np.minimum(np.searchsorted(ids, correlation[work]), len(ids) - 1)
    hit = ids[at] == correlation[work]
    found[work[hit]] = launches[at[hit]]
    return found


_STEP_NAMES = (re.compile(r"ProfilerStep#(\d{1,9})"), re.compile(r"step_(\d{1,9})"))


def step_numbers(names: Sequence[str]) -> np.ndarray:
    """Per distinct event name the step it announces, else -1: ProfilerStep#N, or step_N where the former is absent."""
    for pattern in _STEP_NAMES:
        matches = [pattern.fullmatch(name) for name in names]
        if any(matches):
            return np.array([int(match[1]) if match else -1 for match in matches], np.int32)
    return np.full(len(names), -1, np.int32)


def step_at(times_ns: np.ndarray, start_ns: np.ndarray, end_ns: np.ndarray, number: np.ndarray) -> np.ndarray:
    """Per time the number of the step whose span [start, end) holds it, else -1; steps are sorted by start."""
    if not len(start_ns):
        return np.full(len(times_ns), -1, np.int32)
    at = np.searchsorted(start_ns, times_ns, side="right") - 1
    inside = (at >= 0) & (times_ns < end_ns[np.maximum(at, 0)])
    return np.where(inside, number[np.maximum(at, 0)], -1).astype(np.int32)
