"""Sweep: an ordered list of sizes on chosen backends, as a frozen value; its checks, its plan and its fields in a link. Pure."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from itertools import product
from typing import Any

from core.analysis.wording import counted
from core.layers import Layer
from core.workload import (
    SIZE_MAX,
    Workload,
    WorkloadError,
    backend_of,
    layer_of,
    make,
    to_fields,
    whole,
)

KINDS: Mapping[str, str] = {"sweep": "Sweep", "map": "Win map", "traffic": "My traffic"}
MODES: Mapping[str, str] = {"shared": "One process lives through the list", "isolated": "Each size starts fresh"}
CACHES: Mapping[str, str] = {"cold": "Cold", "warm": "Warm"}
POINTS_MAX = 200
BACKENDS_MAX = 6
COUNT_MAX = 1_000_000_000
LIMIT_MAX = 1_000
STEPS = 10
#: A winner is named from this many cold compiles, in interleaved rounds.
MAP_ROUNDS = 3
MAP_STEPS = 5
_COLUMNS = ("batch", "seq", "count")
#: What a log may call its columns.
_HEADINGS = {
    **dict.fromkeys(("batch", "batch_size", "bs", "batchsize"), "batch"),
    **dict.fromkeys(("seq", "sequence", "seq_len", "seqlen", "sequence_length", "length", "tokens", "len"), "seq"),
    **dict.fromkeys(("count", "n", "calls", "times", "requests", "hits"), "count"),
}
_SPLIT = re.compile(r"[\s,;|]+")
_POWERS = tuple(1 << power for power in range(15))
_REAL: Mapping[str, tuple[int, ...]] = {
    "hidden": (2048, 2304, 2560, 3072, 3584, 4096, 5120, 8192),
    "intermediate": (5632, 8192, 8960, 9728, 11008, 13824, 14336, 18944),
    "in_features": (2048, 2560, 3072, 3584, 4096, 5120, 8192),
    "out_features": (5632, 8192, 8960, 11008, 13824, 14336, 18944),
    "seq": (77, 197, 384, 500, 777, 1000, 1500, 2047),
}
_REAL_BATCH = (3, 7, 12, 20, 48, 96, 100)


@dataclass(frozen=True)
class Task:
    """One thing to measure: `backend` at position `index` of the list, in `round`, by the process of that name."""

    order: int
    process: str
    backend: str
    index: int
    round: int


@dataclass(frozen=True)
class Sweep:
    """What to sweep. Build one with `make_sweep`; equal sweeps have equal keys.

    `base` holds the workload at the first point on the first backend. `points` are the sizes along `axes`, in the order in
    which they are called; `counts` (traffic alone) says how often each is called.
    """

    kind: str
    base: Workload
    axes: tuple[str, ...]
    points: tuple[tuple[int, ...], ...]
    backends: tuple[str, ...]
    counts: tuple[int, ...] = ()
    mode: str = "shared"
    cache: str = "cold"
    mark_dynamic: bool = False
    recompile_limit: int | None = None

    @property
    def key(self) -> str:
        """Twelve hex digits that name this sweep in files and links."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()[:12]

    @property
    def title(self) -> str:
        """One line for people."""
        axes = " × ".join(size.title.lower() for size in axis_sizes(self))
        what = {"sweep": f"{axes} sweep", "map": f"win map over {axes}", "traffic": "traffic"}[self.kind]
        return f"{layer_of(self.base).title}, {what}, {counted(len(self.points), 'point')}"

    @property
    def rounds(self) -> int:
        """How many times each point is measured on each backend."""
        return MAP_ROUNDS if self.kind == "map" else 1


def axis_sizes(sweep: Sweep) -> tuple[Any, ...]:
    """The layer's sizes that change, in the order of the sweep's axes."""
    by_name = {size.name: size for size in layer_of(sweep.base).sizes}
    return tuple(by_name[name] for name in sweep.axes)


def workload_at(sweep: Sweep, backend: str, index: int) -> Workload:
    """What runs at one position of the list on one backend."""
    sizes = dict(zip(sweep.axes, sweep.points[index], strict=True))
    return make({**to_fields(sweep.base), **sizes, "backend": backend})


def holds(sweep: Sweep, workload: Workload) -> bool:
    """Whether the sweep comes to a workload's layer and sizes, however many steps were profiled and on whatever backend."""
    base, sizes = sweep.base, dict(workload.sizes)
    if replace(workload, sizes=base.sizes, backend=base.backend, steps=base.steps, seed=base.seed) != base:
        return False
    fixed = all(sizes[name] == value for name, value in base.sizes if name not in sweep.axes)
    return fixed and tuple(sizes[axis] for axis in sweep.axes) in sweep.points


def plan(sweep: Sweep) -> tuple[Task, ...]:
    """Everything to measure, in order: series after series, each in a process of its own; of a win map point after point,
    round after round, all backends in one process, so that what is compared was measured at the same time."""
    if sweep.kind == "map":
        cells = product(range(len(sweep.points)), range(sweep.rounds), sweep.backends)
        return tuple(Task(order, "map", backend, index, round_) for order, (index, round_, backend) in enumerate(cells))
    calls = product(sweep.backends, range(len(sweep.points)))
    return tuple(Task(order, backend, backend, index, 0) for order, (backend, index) in enumerate(calls))


def make_sweep(fields: Mapping[str, Any]) -> Sweep:
    """A checked sweep from flat fields, as a link, a form or the command line gives them.

    Beside a workload's fields (without backend): kind, axis, values (numbers by commas), for a map axis2 and values2, for
    traffic rows (batch, seq, count a line or by semicolons), backends (by commas), mode, cache, mark (on or off), limit.
    Raises WorkloadError, one sentence, for the first field that is wrong.
    """
    given = dict(fields)
    kind = _choice("kind", given.pop("kind", "sweep"), KINDS)
    names = [name for name in _SPLIT.split(str(given.pop("backends", "eager,compile"))) if name]
    of_kind = {"sweep": ("axis", "values"), "map": ("axis", "values", "axis2", "values2"), "traffic": ("rows",)}[kind]
    options = {name: given.pop(name, "") for name in of_kind}  # rows is a size of a layer, too
    mode = _choice("mode", given.pop("mode", "isolated" if kind == "map" else "shared"), MODES)
    cache = _choice("cache", given.pop("cache", "cold"), CACHES)
    mark = _choice("mark", str(given.pop("mark", "off")).lower(), {"on": "On", "off": "Off"}) == "on"
    limit_text = str(given.pop("limit", "")).strip()
    given.setdefault("steps", MAP_STEPS if kind == "map" else STEPS)
    backends = tuple(dict.fromkeys(names))
    if not backends:
        raise WorkloadError("No backend is chosen; choose at least one.")
    if len(backends) > BACKENDS_MAX:
        raise WorkloadError(f"{len(backends)} backends are too many for one picture; choose at most {BACKENDS_MAX}.")
    base = make({**given, "backend": backends[0]})
    layer = layer_of(base)
    axes, points, counts = _points(kind, layer, options)
    base = make({**to_fields(base), **dict(zip(axes, points[0], strict=True))})
    for name in backends:
        make({**to_fields(base), "backend": name})
    if kind == "map" and len(backends) < 2:
        raise WorkloadError("A win map compares backends; choose at least two.")
    if kind == "map" and cache != "cold":
        raise WorkloadError("A win map stands on cold compiles; choose cache cold.")
    if kind == "map" and mode != "isolated":
        raise WorkloadError("A win map compiles each size anew; choose mode isolated.")
    if kind == "traffic" and mode != "shared":
        raise WorkloadError("Traffic is replayed by one process that lives through it; choose mode shared.")
    limit = whole("The recompile limit", limit_text, 1, LIMIT_MAX) if limit_text else None
    return Sweep(kind, base, axes, points, backends, counts, mode, cache, mark, limit)


def to_sweep_fields(sweep: Sweep) -> dict[str, str]:
    """The flat fields that `make_sweep` takes back; what a link carries."""
    fixed = {name: value for name, value in to_fields(sweep.base).items() if name not in (*sweep.axes, "backend")}
    fields: dict[str, Any] = {"kind": sweep.kind, **fixed, "backends": ",".join(sweep.backends)}
    if sweep.kind == "traffic":
        rows = zip(sweep.points, sweep.counts, strict=True)
        fields["rows"] = ";".join(",".join(map(str, (*values, count))) for values, count in rows)
    else:
        for suffix, axis, at in zip(("", "2"), sweep.axes, range(2), strict=False):
            fields[f"axis{suffix}"] = axis
            values = [point[at] for point in sweep.points]
            fields[f"values{suffix}"] = ",".join(map(str, dict.fromkeys(values) if sweep.kind == "map" else values))
    fields |= {"mode": sweep.mode, "cache": sweep.cache, "mark": sweep.mark_dynamic}
    fields |= {"limit": sweep.recompile_limit} if sweep.recompile_limit is not None else {}
    return {
        name: ("on" if value else "off") if isinstance(value, bool) else str(value) for name, value in fields.items()
    }


def size_lists(axis: str) -> Mapping[str, tuple[int, ...]]:
    """Ready-made lists for an axis, by title."""
    wide = axis not in ("batch", "seq")
    powers = tuple(value for value in _POWERS if (256 if wide else 1) <= value <= (16384 if wide else 256))
    real = _REAL.get(axis, _REAL_BATCH if axis == "batch" else _REAL["hidden"])
    primes = (1021, 2039, 3067, 4093, 8191) if wide else (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37)
    middle = powers[:6]
    return {
        "Powers of two": powers,
        "Real widths" if wide else "Real sizes": real,
        "Primes": primes,
        "1, then 2": (1, 2, 1, 3),
        "Up and down": (*middle, *reversed(middle[:-1])),
    }


def traffic_axes(layer: Layer) -> tuple[str, ...]:
    """The sizes that (batch, seq) of a log fill. Raises WorkloadError for a layer that has no batch."""
    names = tuple(size.name for size in layer.sizes)
    if "batch" not in names:
        raise WorkloadError(f"{layer.title} has no batch, so no traffic can be replayed on it; choose another layer.")
    return ("batch", "seq") if "seq" in names else ("batch",)


def parse_traffic(text: str, axes: tuple[str, ...]) -> tuple[tuple[tuple[int, ...], ...], tuple[int, ...]]:
    """Points and counts from rows of batch, seq, count: a row a line, or several by semicolons. A first line of words names
    the columns, in whatever order.

    A layer without a sequence takes batch times seq rows, and rows of batch, count too. Neighbouring rows of one size are
    added up. Raises WorkloadError, one sentence that names the row.
    """
    rows = _rows(text.lstrip("\ufeff"))
    columns: tuple[str, ...] = _COLUMNS
    is_named = False
    if rows and not any(character.isdigit() for cell in rows[0][1] for character in cell):
        columns, is_named = _columns(rows.pop(0)[1], axes), True
    points: list[tuple[int, ...]] = []
    counts: list[int] = []
    for number, cells in rows:
        if len(cells) == 2 and len(axes) == 1 and not is_named:
            cells = [cells[0], "1", cells[1]]
        if len(cells) != len(columns):
            shown = ", ".join(cells)
            shown = shown if len(shown) <= 40 else shown[:37] + "..."
            raise WorkloadError(f"Row {number} ({shown!r}) is not {', '.join(columns)}: whole numbers.")
        named = dict(zip(columns, cells, strict=True))
        sizes = [whole(f"Row {number}: {name}", named.get(name, "1"), 1, SIZE_MAX) for name in ("batch", "seq")]
        count = whole(f"Row {number}: count", named["count"], 1, COUNT_MAX)
        point = tuple(sizes) if len(axes) == 2 else (whole(f"Row {number}: batch × seq", _times(sizes), 1, SIZE_MAX),)
        if points and points[-1] == point:
            counts[-1] = whole(f"Row {number}: the count with its neighbours'", counts[-1] + count, 1, COUNT_MAX)
        else:
            points.append(point)
            counts.append(count)
    if not points:
        raise WorkloadError("There is no traffic to replay; give rows of batch, seq, count, such as 8, 512, 120.")
    return tuple(points), tuple(counts)


def _rows(text: str) -> list[tuple[int, list[str]]]:
    """The cells of each row, and the row's number: that of its line, or its place where all are in one line, as links have
    them."""
    lines = text.splitlines()
    found = [(number, cells) for number, line in enumerate(lines, 1) for cells in _cells(line)]
    if len({number for number, _ in found}) > 1:
        return found
    return list(enumerate((cells for _, cells in found), 1))


def _cells(line: str) -> list[list[str]]:
    """Semicolons part cells, as spreadsheets write them, or rows where there are several cells between them."""
    rows = [cells for part in line.split(";") if (cells := [cell for cell in re.split(r"[\s,|\"']+", part) if cell])]
    if all(len(cells) == 1 for cells in rows):
        return [[cell for (cell,) in rows]] if rows else []
    return rows


def _columns(names: list[str], axes: tuple[str, ...]) -> tuple[str, ...]:
    """What the columns hold, by a header's words. Raises WorkloadError for a header that does not say."""
    found = tuple(_HEADINGS.get(name.strip("\"'").lower(), "") for name in names)
    if "" in found or len(set(found)) < len(found) or not {*axes, "count"} <= set(found):
        shown = ", ".join(names)[:60]
        raise WorkloadError(f"The first line ({shown!r}) does not name the columns; write batch, seq, count.")
    return found


def _times(sizes: list[int]) -> int:
    found = 1
    for size in sizes:
        found *= size
    return found


def _points(
    kind: str, layer: Layer, options: Mapping[str, Any]
) -> tuple[tuple[str, ...], tuple[tuple[int, ...], ...], tuple[int, ...]]:
    if kind == "traffic":
        axes = traffic_axes(layer)
        points, counts = parse_traffic(str(options["rows"]), axes)
    else:
        known = {size.name: size.name for size in layer.sizes}
        axes = (_choice("axis", options["axis"] or layer.sizes[0].name, known),)
        lists: list[tuple[int, ...]] = [_values(options["values"], axes[0])]
        if kind == "map":
            axes = (*axes, _choice("axis2", options["axis2"] or layer.sizes[-1].name, known))
            if axes[0] == axes[1]:
                raise WorkloadError("The two axes of a win map are the same; choose two different sizes.")
            lists.append(_values(options["values2"], axes[1]))
            lists = [tuple(dict.fromkeys(values)) for values in lists]
        points, counts = tuple(product(*lists)), ()
    if len(points) > POINTS_MAX:
        raise WorkloadError(f"{len(points):,} points are too many for one sweep; give at most {POINTS_MAX}.")
    return axes, points, counts


def _values(text: Any, axis: str) -> tuple[int, ...]:
    cells = [cell for cell in _SPLIT.split(str(text).strip()) if cell]
    if not cells:
        raise WorkloadError(f"The list of sizes for {axis} is empty; give whole numbers, such as 4, 8, 16.")
    return tuple(whole(f"Each {axis}", cell, 1, SIZE_MAX) for cell in cells)


def _choice(name: str, value: Any, known: Mapping[str, str]) -> str:
    if isinstance(value, str) and value in known:
        return value
    raise WorkloadError(f"{name} must be one of {', '.join(known)}; {str(value)[:40]!r} is not.")


def backend_titles(sweep: Sweep) -> tuple[str, ...]:
    """The backends as people call them."""
    return tuple(backend_of(workload_at(sweep, name, 0)).title for name in sweep.backends)
