"""Level of detail: what a timeline of any length needs to draw one window, at a near-constant cost.

Spans wide enough to see come one by one; narrower ones are summed into a raster of busy shares, so that none is hidden.
"""

from dataclasses import dataclass

import numpy as np

from core.analysis.families import FAMILIES, family, operator_family
from core.analysis.lanes import Lane, lanes
from core.trace import GPU_WORK, KINDS, Tables, codes, column, kind_mask

FAMILY_CODES = (*(key for key, _, _ in FAMILIES), "op", "annotation", "launch", "gpu_annotation")


@dataclass(frozen=True)
class Spans:
    """Every span that has a duration, sorted by (lane, start); in one lane none overlaps another.

    start_ns, dur_ns, end_ns: int64. lane, row (event row), name (index of names): int32. family_code: int8 (index of
    families: the kernel families, then op, annotation, launch, gpu_annotation). Lane i holds the spans
    offsets[i]:offsets[i + 1]; lane_kinds are 'op', 'launch', 'annotation' (of the GPU) or 'gpu'.
    """

    start_ns: np.ndarray
    dur_ns: np.ndarray
    end_ns: np.ndarray
    lane: np.ndarray
    row: np.ndarray
    name: np.ndarray
    family_code: np.ndarray
    lane_labels: tuple[str, ...]
    lane_kinds: tuple[str, ...]
    names: tuple[str, ...]
    families: tuple[str, ...]
    offsets: np.ndarray


@dataclass(frozen=True)
class View:
    """What one window shows.

    rows: indices into the Spans of those at least min_px wide. The raster has one row a lane, one column a bin:
    edges_ns (bins + 1), busy (share of the bin that narrower spans fill, nan where none is), count (narrower spans
    that start there), family_code (index of families that fills most of the cell, -1 where none is).
    """

    start_ns: int
    end_ns: int
    rows: np.ndarray
    edges_ns: np.ndarray
    busy: np.ndarray
    count: np.ndarray
    family_code: np.ndarray


def spans(tables: Tables, *, gpu_annotations: bool = True) -> Spans:
    """The spans of a trace in lanes: CPU threads nested by depth, their launch calls, then GPU streams by device.

    `gpu_annotations` also gives the streams' annotations lanes; they mirror the CPU's.
    """
    events = tables.events
    found: list[Lane] = [lane for lane in lanes(tables) if gpu_annotations or lane.kind != "annotation"]
    row = np.concatenate([lane.rows for lane in found]) if found else np.empty(0, np.int32)
    sizes = np.array([len(lane.rows) for lane in found], np.int64)
    start_ns, dur_ns = column(events, "start_ns")[row], column(events, "dur_ns")[row]
    name_codes, names = codes(events, "name")
    return Spans(
        start_ns=start_ns,
        dur_ns=dur_ns,
        end_ns=start_ns + dur_ns,
        lane=np.repeat(np.arange(len(found), dtype=np.int32), sizes),
        row=row.astype(np.int32),
        name=name_codes[row],
        family_code=_family_codes(tables, row),
        lane_labels=tuple(lane.label for lane in found),
        lane_kinds=tuple(lane.kind for lane in found),
        names=tuple(names),
        families=FAMILY_CODES,
        offsets=np.concatenate(([0], np.cumsum(sizes))).astype(np.int64),
    )


def query(found: Spans, start_ns: int, end_ns: int, *, width_px: int = 1400, min_px: float = 2.0) -> View:
    """The view of [start_ns, end_ns) on width_px pixels; a bin of the raster is min_px wide."""
    width_ns = max(float(end_ns - start_ns), 1.0)
    bins = max(1, int(width_px / min_px))
    bin_ns = width_ns / bins
    n_lanes, n_families = len(found.lane_labels), len(found.families)
    wide: list[np.ndarray] = []
    busy = np.full((n_lanes, bins), np.nan, np.float32)
    count = np.zeros((n_lanes, bins), np.int32)
    family_code = np.full((n_lanes, bins), -1, np.int8)
    for lane in range(n_lanes):
        low, high = found.offsets[lane], found.offsets[lane + 1]
        first = low + np.searchsorted(found.end_ns[low:high], start_ns, side="left")
        last = low + np.searchsorted(found.start_ns[low:high], end_ns, side="left")
        if last <= first:
            continue
        is_wide = found.dur_ns[first:last] >= bin_ns
        wide.append(first + np.flatnonzero(is_wide))
        narrow = first + np.flatnonzero(~is_wide)
        if not len(narrow):
            continue
        # A narrow span is shorter than a bin, so it lies in one bin or in two neighbours.
        begin = np.clip((found.start_ns[narrow] - start_ns) / bin_ns, 0, bins)
        end = np.clip((found.end_ns[narrow] - start_ns) / bin_ns, 0, bins)
        left = np.minimum(begin.astype(np.int64), bins - 1)
        right = np.minimum(end.astype(np.int64), bins - 1)
        in_left = np.minimum(end, left + 1) - begin
        in_right = np.where(right > left, end - right, 0.0)
        code = found.family_code[narrow].astype(np.int64)
        cells = np.bincount(left * n_families + code, in_left, bins * n_families)
        cells += np.bincount(right * n_families + code, in_right, bins * n_families)
        by_family = cells.reshape(bins, n_families)
        count[lane] = np.bincount(left, minlength=bins)
        share = by_family.sum(axis=1)
        filled = (share > 0) | (count[lane] > 0)
        busy[lane, filled] = np.minimum(share[filled], 1.0)
        family_code[lane, filled] = _fullest(by_family, left, code)[filled]
    return View(
        start_ns=int(start_ns),
        end_ns=int(end_ns),
        rows=np.concatenate(wide) if wide else np.empty(0, np.int64),
        edges_ns=start_ns + bin_ns * np.arange(bins + 1),
        busy=busy,
        count=count,
        family_code=family_code,
    )


def _fullest(by_family: np.ndarray, left: np.ndarray, code: np.ndarray) -> np.ndarray:
    fullest = by_family.argmax(axis=1)
    # Spans of no length fill nothing; their cell still shows one of them.
    empty = by_family.max(axis=1) <= 0
    if empty.any():
        any_code = np.zeros(len(by_family), np.int64)
        any_code[left] = code
        fullest[empty] = any_code[empty]
    return fullest


def _family_codes(tables: Tables, row: np.ndarray) -> np.ndarray:
    name_codes, names = codes(tables.events, "name")
    kind_codes, _ = codes(tables.events, "kind")
    pairs, inverse = np.unique(name_codes[row].astype(np.int64) * len(KINDS) + kind_codes[row], return_inverse=True)
    on_gpu = bool(kind_mask(tables.events, *GPU_WORK).any())
    keys = []
    for pair in pairs.tolist():
        name, kind = names[pair // len(KINDS)], KINDS[pair % len(KINDS)]
        if kind in GPU_WORK:
            keys.append(family(name, kind))
        else:  # in a CPU run the operators are the work, and carry its colours
            keys.append(operator_family(name) if kind == "op" and not on_gpu else kind)
    return np.array([FAMILY_CODES.index(key) for key in keys], np.int8)[inverse]
