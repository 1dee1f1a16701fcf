"""Which lane of a timeline each span stands in, so that no two of one lane overlap."""

import heapq
from dataclasses import dataclass

import numpy as np

from core.trace import GPU_WORK, Tables, column, kind_mask


@dataclass(frozen=True)
class Lane:
    """One line of the timeline: its label, its kind ('op', 'launch', 'annotation' or 'gpu') and its event rows."""

    label: str
    kind: str
    rows: np.ndarray


def lanes(tables: Tables) -> list[Lane]:
    """CPU threads (annotations and ops, nested by depth), the launch calls of each, then GPU streams by device.

    Events without a duration have no lane. Rows of a lane are sorted by start.
    """
    events = tables.events
    has_dur = column(events, "dur_ns") >= 0
    track = column(events, "track")
    labels = tables.tracks["label"].to_pylist()
    roles = tables.tracks["role"].to_pylist()
    found: list[Lane] = []
    for kind, kinds in (("op", ("op", "annotation")), ("launch", ("launch",))):
        rows = np.flatnonzero(has_dur & kind_mask(events, *kinds))
        for number in np.unique(track[rows]).tolist():
            if roles[number] == "cpu":
                label = labels[number] if kind == "op" else f"{labels[number]}: launches"
                found += _stacked(tables, rows[track[rows] == number], label, kind)

    device, stream = column(events, "device"), column(events, "stream")
    rows = np.flatnonzero(has_dur & kind_mask(events, *GPU_WORK, "gpu_annotation"))
    is_annotation = kind_mask(events, "gpu_annotation")
    for number, line in sorted(set(zip(device[rows].tolist(), stream[rows].tolist(), strict=True))):
        here = rows[(device[rows] == number) & (stream[rows] == line)]
        label = f"GPU {number if number >= 0 else '?'} stream {line if line >= 0 else '?'}"
        found += _stacked(tables, here[is_annotation[here]], f"{label}: annotations", "annotation")
        found += _stacked(tables, here[~is_annotation[here]], label, "gpu")
    return found


def _stacked(tables: Tables, rows: np.ndarray, label: str, kind: str) -> list[Lane]:
    """One lane a nesting level; further levels carry their number in the label."""
    if not len(rows):
        return []
    start_ns = column(tables.events, "start_ns")[rows]
    end_ns = start_ns + column(tables.events, "dur_ns")[rows]
    level = nesting_level(start_ns, end_ns)
    order = np.lexsort((start_ns, level))
    same = level[order][1:] == level[order][:-1]
    if np.any(same & (start_ns[order][1:] < end_ns[order][:-1])):
        level = first_free_level(start_ns, end_ns)
    return [
        Lane(label if number == 0 else f"{label} · {number}", kind, rows[level == number])
        for number in range(int(level.max()) + 1)
    ]


def nesting_level(start_ns: np.ndarray, end_ns: np.ndarray) -> np.ndarray:
    """How many spans of the same thread are open where each starts; exact for properly nested spans.

    The spans are sorted by (start, -duration). One of no length counts as 1 ns long.
    """
    closed = np.sort(np.maximum(end_ns, start_ns + 1))
    return np.arange(len(start_ns)) - np.searchsorted(closed, start_ns, side="right")


def first_free_level(start_ns: np.ndarray, end_ns: np.ndarray) -> np.ndarray:
    """For spans that overlap without nesting (concurrent kernels): the lowest level that is free at each start."""
    free: list[int] = []
    busy: list[tuple[int, int]] = []
    levels = np.empty(len(start_ns), np.int64)
    n_levels = 0
    for position, (start, end) in enumerate(zip(start_ns.tolist(), end_ns.tolist(), strict=True)):
        while busy and busy[0][0] <= start:
            heapq.heappush(free, heapq.heappop(busy)[1])
        if free:
            level = heapq.heappop(free)
        else:
            level, n_levels = n_levels, n_levels + 1
        levels[position] = level
        heapq.heappush(busy, (max(end, start + 1), level))
    return levels
