"""The runs as rows: what the list shows and the search reads, which rows a filter leaves, and the list as CSV."""

from __future__ import annotations

import csv
import functools
import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from core.glossary import explain
from core.store.entry import ORIGINS, Entry
from core.store.head import Head
from core.store.index import Snapshot
from core.ui import words
from core.workload import flag_words

STATES = ("ok", "throttled", "unsettled", "failed")


@dataclass(frozen=True)
class Column:
    """One column of the list. `number` is the printf format of a numeric one, None for text; `value` gives None for
    what is unknown."""

    title: str
    help: str
    value: Callable[[Entry], Any]
    number: str | None = None
    width: int = 100


@dataclass(frozen=True)
class Facet:
    """A property that runs are filtered by: its name in the link, and its value as the link and as people write it."""

    name: str
    title: str
    help: str
    value: Callable[[Entry], str]
    shown: Callable[[Entry], str]


@dataclass(frozen=True)
class Filters:
    """What the list is narrowed to: words that must all occur, and the chosen values of each facet (none: all)."""

    text: str = ""
    chosen: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Table:
    """All runs as rows, in the order of `entries`. `texts` holds what a search reads of each row, in lower case;
    `options` the values of each facet that occur, with what people call them."""

    entries: tuple[Entry, ...]
    frame: pd.DataFrame
    texts: tuple[str, ...]
    facets: tuple[tuple[str, ...], ...]
    options: Mapping[str, Mapping[str, str]]


def state_help() -> str:
    """What the status of a run may be."""
    return (
        "ok: may answer a question. throttled: the clocks were held down. failed: there is no result. unsettled: "
        + explain("unsettled")
    )


FACETS: tuple[Facet, ...] = (
    Facet("layer", "Layer", "What was run.", lambda e: e.head.workload.layer, lambda e: words.layer(e.head.workload)),
    Facet("backend", "Backend", explain("backend"), lambda e: e.head.workload.backend,
          lambda e: words.backend(e.head.workload)),
    Facet("device", "Device", "What carried the run out.", lambda e: e.head.device.name,
          lambda e: words.device(e.head.device)),
    Facet("origin", "Origin", " ".join(f"{origin}: {words.origin_help(origin)}" for origin in ORIGINS),
          lambda e: e.origin, lambda e: e.origin),
    Facet("status", "Status", state_help(), lambda e: e.head.state, lambda e: e.head.state),
)  # fmt: skip


def _facet(name: str) -> Callable[[Entry], str]:
    return next(facet.shown for facet in FACETS if facet.name == name)


def taken(head: Head) -> str:
    """When a run was taken, to the minute."""
    return head.created[:16].replace("T", " ")


def _mb(count: int | None) -> float | None:
    return None if count is None else count / 1e6


_UNKNOWN_WHY = "unknown: not measured; the run's own page says why."
COLUMNS: tuple[Column, ...] = (
    Column("Layer", "What was run.", _facet("layer"), width=135),
    Column("Sizes", "The layer's sizes in its own order (the run's page names them), and its switches.",
           lambda e: words.sizes_and_flags(e.head.workload), width=255),
    Column("Backend", explain("backend"), _facet("backend"), width=165),
    Column("Device", "What carried the run out.", _facet("device"), width=115),
    Column("Step, µs", f"Median, unprofiled: {explain('step time')} Taken with device events on a GPU, with the host's "
           f"clock on a CPU. {_UNKNOWN_WHY}",
           lambda e: e.head.step_us.median if e.head.step_us else None, "%.2f", 85),
    Column("Step n", f"{explain('n')} Here: of the unprofiled step.",
           lambda e: e.head.step_us.n if e.head.step_us else None, "%d", 65),
    Column("Replay, µs", f"Median of the CUDA-graph replay: {explain('cuda-graph replay')} Taken with device events. "
           f"{_UNKNOWN_WHY}", lambda e: e.head.graph_replay_us.median if e.head.graph_replay_us else None, "%.2f", 90),
    Column("Replay n", f"{explain('n')} Here: of the CUDA-graph replay.",
           lambda e: e.head.graph_replay_us.n if e.head.graph_replay_us else None, "%d", 75),
    Column("Origin", next(facet.help for facet in FACETS if facet.name == "origin"), _facet("origin"), width=80),
    Column("Peak memory, MB", f"{explain('peak memory')} Told by PyTorch's allocator, once a run. {_UNKNOWN_WHY}",
           lambda e: _mb(e.head.peak_memory_bytes), "%.4g", 130),
    Column("Numeric error", f"{explain('numeric error')} The worst of the tensors compared; Infinity where one was not "
           f"finite. {_UNKNOWN_WHY}", lambda e: e.head.error, "%.1e", 110),
    Column("dtype", explain("dtype"), lambda e: e.head.workload.dtype, width=60),
    Column("Passes", explain("passes"), lambda e: words.passes(e.head.workload), width=140),
    Column("Status", state_help(), _facet("status"), width=80),
    Column("Taken, UTC", "When the run was measured.", lambda e: taken(e.head), width=130),
    Column("Kept", explain("kept"), lambda e: "kept" if e.kept else "", width=55),
    Column("torch", "PyTorch's version in the process that ran it.", lambda e: e.head.versions.get("torch"), width=115),
    Column("Run", "The run's name, as links and files carry it.", lambda e: e.head.id, width=330),
)  # fmt: skip


@functools.lru_cache(maxsize=2)
def table(snapshot: Snapshot) -> Table:
    """All runs as rows; made once for each state of the store."""
    entries = snapshot.entries
    values = [[column.value(entry) for column in COLUMNS] for entry in entries]
    frame = pd.DataFrame(
        {
            column.title: pd.Series([row[at] for row in values], dtype="float64" if column.number else "object")
            for at, column in enumerate(COLUMNS)
        }
    )
    options = {facet.name: {facet.value(entry): facet.shown(entry) for entry in entries} for facet in FACETS}
    return Table(
        entries,
        frame,
        tuple(_text(entry, row) for entry, row in zip(entries, values, strict=True)),
        tuple(tuple(facet.value(entry) for facet in FACETS) for entry in entries),
        {name: dict(sorted(found.items(), key=lambda pair: pair[1].lower())) for name, found in options.items()},
    )


def _text(entry: Entry, row: list[Any]) -> str:
    """What is shown of a run, with the sentence of its failure, as a search reads it."""
    shown = (
        words.UNKNOWN if value is None else column.number % value if column.number else str(value)
        for column, value in zip(COLUMNS, row, strict=True)
    )
    plain = (str(size) for _, size in entry.head.workload.sizes)  # people write 8192 as well as 8,192
    return " ".join((*shown, *plain, entry.head.workload.layer, entry.head.failure or "")).lower()


def matching(found: Table, filters: Filters) -> list[int]:
    """The rows that a filter leaves, in the table's order."""
    wanted = filters.text.lower().split()
    allowed = [frozenset(filters.chosen.get(facet.name, ())) for facet in FACETS]
    return [
        at
        for at, (text, values) in enumerate(zip(found.texts, found.facets, strict=True))
        if all(not some or value in some for some, value in zip(allowed, values, strict=True))
        and all(word in text for word in wanted)
    ]


_CSV = (
    "run", "layer", "sizes", "backend", "dtype", "passes", "profiled_steps", "seed", "device", "driver", "origin",
    "status", "failure", "step_median_us", "step_min_us", "step_max_us", "step_n", "step_taken_with",
    "graph_replay_median_us", "graph_replay_min_us", "graph_replay_max_us", "graph_replay_n", "peak_memory_bytes",
    "worst_relative_error", "all_finite", "n_compiles", "taken_utc", "kept", "versions",
)  # fmt: skip


def as_csv(entries: tuple[Entry, ...]) -> bytes:
    """The runs as CSV, a row a run with its id, device and versions; an empty cell is unknown."""
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(_CSV)
    for entry in entries:
        writer.writerow([words.cell(value) for value in _csv_row(entry)])
    return out.getvalue().encode()


def _csv_row(entry: Entry) -> tuple[Any, ...]:
    head, run = entry.head, entry.head.workload
    step, replay = head.step_us, head.graph_replay_us
    return (
        head.id, run.layer, " ".join([*(f"{name}={size}" for name, size in run.sizes), *flag_words(run)]), run.backend,
        run.dtype, run.passes, run.steps, run.seed, head.device.name, head.device.driver, entry.origin, head.state,
        head.failure,
        *((step.median, step.min, step.max, step.n) if step else (None,) * 4), head.step_how,
        *((replay.median, replay.min, replay.max, replay.n) if replay else (None,) * 4), head.peak_memory_bytes,
        head.worst_error, head.finite, head.n_compiles, head.created, entry.kept,
        "; ".join(f"{name} {version}" for name, version in head.versions.items() if version),
    )  # fmt: skip
