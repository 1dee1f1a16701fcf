"""Small helpers on event rows that several analyses share."""

import re
from collections.abc import Sequence

import numpy as np

from core.trace import Tables, codes, column, kind_mask

_STEP_NAME = re.compile(r"(?:ProfilerStep#|step_)(\d{1,9})")


def groups(*keys: np.ndarray) -> list[np.ndarray]:
    """Positions of equal key combinations, one array a group, each ascending; groups by their first position."""
    if not len(keys[0]):
        return []
    label = np.zeros(len(keys[0]), np.int64)
    for key in keys:
        values, inverse = np.unique(key, return_inverse=True)
        label = np.unique(label * len(values) + inverse, return_inverse=True)[1]
    order = np.argsort(label, kind="stable")
    parts = np.split(order, np.flatnonzero(np.diff(label[order])) + 1)
    return sorted(parts, key=lambda part: int(part[0]))


def enclosing(parent: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Per event the row of the nearest ancestor that is wanted, else -1; parent holds rows or -1."""
    above = parent.copy()
    while True:
        skip = (above >= 0) & ~wanted[np.maximum(above, 0)]
        if not skip.any():
            return above
        above[skip] = parent[above[skip]]


def step_annotations(tables: Tables) -> dict[int, np.ndarray]:
    """The rows of the annotations that mark each step, by step number."""
    step = column(tables.events, "step")
    name_codes, names = codes(tables.events, "name")
    # A step_N inside a ProfilerStep#M is no step of its own: its step column says M.
    announced = np.array([_announced(name) for name in names], np.int64)[name_codes]
    rows = np.flatnonzero(kind_mask(tables.events, "annotation") & (step >= 0) & (announced == step))
    return {int(number): rows[step[rows] == number] for number in np.unique(step[rows])}


def _announced(name: str) -> int:
    match = _STEP_NAME.fullmatch(name)
    return int(match[1]) if match else -1


def names_of(tables: Tables, rows: Sequence[int] | np.ndarray) -> list[str]:
    """The names of the events in these rows."""
    name_codes, names = codes(tables.events, "name")
    return [names[code] for code in name_codes[np.asarray(rows, np.int64)].tolist()]
