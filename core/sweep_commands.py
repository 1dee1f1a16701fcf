"""What the command line does with sweeps: carries them out, and prints the ledger of one."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec

from core.analysis.recompiles import ledger
from core.analysis.wording import counted
from core.conductor import DONE, Conductor, Execute, PointError, Report, lost, point_words
from core.store import runfile, sweepfile
from core.store.manifest import Manifest
from core.store.runfile import RunFileError
from core.store.sweepentry import SweepEntry
from core.store.sweepfacts import facts
from core.store.sweepfile import SweepHead
from core.store.sweeps import TRACE_BYTES_MAX, Sweeps
from core.sweep import Sweep, make_sweep
from core.sweep_order import PointOrder
from core.workload import WorkloadError, backend_of

_TRAFFIC_BYTES_MAX = 1_000_000


def sweep_of(fields: Mapping[str, Any], traffic: Path | None) -> Sweep:
    """The sweep that NAME=VALUE fields ask for, its rows from a file where one is given. Raises WorkloadError, OSError."""
    if traffic is None:
        return make_sweep(fields)
    own = ("rows", "axis", "values", "axis2", "values2", "kind", "batch", "seq")
    taken = next((name for name in own if name in fields), None)
    if taken is not None:
        raise WorkloadError(f"Traffic brings its own sizes; leave {taken} out.")
    if traffic.stat().st_size > _TRAFFIC_BYTES_MAX:
        raise WorkloadError(f"{traffic} is larger than any traffic of 200 sizes; give rows of batch, seq, count.")
    return make_sweep({**fields, "kind": "traffic", "rows": traffic.read_text(encoding="utf-8-sig", errors="replace")})


def record(wanted: Sequence[Sweep], sweeps: Sweeps, *, once: bool) -> int:
    """Carries sweeps out, going on with those that were left unfinished; `once` passes over those that are there whole.

    The exit code: 1 where a sweep stopped or a point failed.
    """
    failed = False
    for index, sweep in enumerate(wanted, 1):
        print(f"[{index}/{len(wanted)}] {sweep.title}", flush=True)
        own = [entry for entry in sweeps.of(sweep) if entry.origin == "live"]
        there = {entry.head.id: len(entry.done - lost(sweeps.manifests(entry))) for entry in own}
        if once and any(there[entry.head.id] == entry.total for entry in own):
            print("    already recorded")
            continue
        begun = next((entry for entry in own if there[entry.head.id] < entry.total), None)
        entry = begun or sweeps.create(sweep)
        print(
            f"    {entry.folder}\n    {there.get(entry.head.id, 0):,} of {counted(entry.total, 'point')} there",
            flush=True,
        )
        try:
            stopped = _carry_out(sweeps, entry)
        except KeyboardInterrupt:
            print("Stopped; the same command goes on where it was left.")
            return 1
        if stopped is not None:
            print(f"    {stopped}", flush=True)
        failed = failed or stopped is not None or any(one.failure for one in sweeps.manifests(entry))
    return 1 if failed else 0


def _carry_out(sweeps: Sweeps, entry: SweepEntry) -> str | None:
    """Measures what is missing of a sweep; why it stopped, in a sentence, None where it did not."""
    from core.bench.series_host import SeriesHost  # only where something is really run

    with closing(SeriesHost()) as host:
        ended = Conductor(sweeps, entry, _telling(_execute_in(host))).run()
    return None if ended.state == DONE else ended.problem or "The sweep was stopped."


def _execute_in(host: Any) -> Execute:
    from core.bench.series_host import SeriesError

    def execute(order: PointOrder, report: Report) -> bytes:
        try:
            data: bytes = host.perform(order, report)
        except SeriesError as error:
            raise PointError(error.kind, error.sentence, error.log) from error
        return data

    return execute


def _telling(execute: Execute) -> Execute:
    """The same, with a line printed for every point."""

    def told(order: PointOrder, report: Report) -> bytes:
        task = order.task
        print(f"    {task.order + 1:4d}  {task.backend}, {point_words(order.sweep, task.index)}: ", end="", flush=True)
        try:
            data = execute(order, report)
        except PointError as error:
            print(error.sentence, flush=True)
            raise
        print(_result(runfile.read_manifest(data)), flush=True)
        return data

    return told


def _result(found: Manifest) -> str:
    if found.failure is not None:
        return found.failure.sentence
    call = found.point.call if found.point else None
    compiles = sum(not one.backward for one in call.compiles) if call else 0  # as the ledger counts
    told = counted(compiles, "compile") if backend_of(found.workload).compiles else "nothing to compile"
    return f"{told}, {found.seconds:.1f} s" + ("" if found.status == "ok" else f", {found.status}")


def listed(entry: SweepEntry) -> dict[str, Any]:
    """A sweep as `list --json` tells it."""
    return {
        "id": entry.head.id,
        "status": "complete" if entry.complete else "unfinished",
        "recorded": entry.recorded,
        "path": str(entry.folder),
        "sweep": entry.head.sweep.title,
        "points": {"done": len(entry.done), "total": entry.total},
    }


def summarize(path: Path) -> dict[str, Any]:
    """The ledger of a sweep's folder or zip as plain JSON values: fields of its head, and a row a call.

    Raises RunFileError, one sentence, for what cannot be read; damaged points of a folder are left out and noted.
    """
    head, manifests, notes = _read(path)
    sweep = head.sweep
    entry = SweepEntry(head, path, "uploaded", frozenset(), "")
    series = facts(entry, manifests)
    points = {point.run_id: point for one in series for point in one.points}
    rows = []
    for row in ledger(series, sweep.axes, shared=sweep.mode == "shared", fixed=dict(sweep.base.sizes)):
        point = points[row.run_id]
        rows.append(
            {
                "run": row.run_id,
                "series": row.series,
                "title": row.title,
                "call": row.call,
                "round": row.round,
                "values": dict(zip(sweep.axes, row.values, strict=True)),
                "count": row.count,
                "outcome": row.kind,
                "told": row.outcome,
                "why": row.why,
                "attempts": msgspec.to_builtins(point.call.attempts) if point.call else None,
                "misses": [{"entry": one.entry, "dynamo": one.dynamo, "plain": one.plain} for one in row.reasons],
                "served_by": row.served_by,
                "jits": msgspec.to_builtins(row.jits),
                "seconds": row.first_call_s,
                "cuda_graphs": row.cuda_graphs,
                "graph_calls_seconds": row.graph_calls_s,
                "compiles_so_far": row.compiles,
                "recompiles_so_far": row.recompiles,
                "step_us": msgspec.to_builtins(point.step_us),
                "kernel_time_us": msgspec.to_builtins(point.kernel_time_us),
                "peak_memory_bytes": point.peak_memory_bytes,
                "doubt": point.doubt,
                "failure": point.failure,
            }
        )
    last = manifests[-1] if manifests else None
    return {
        "id": head.id,
        "created": head.created,
        "format": head.format,
        "title": sweep.title,
        "sweep": msgspec.to_builtins(sweep),
        "done": len(manifests),
        "total": entry.total,
        "device": msgspec.to_builtins(last.device) if last else None,
        "versions": dict(last.versions) if last else None,
        "notes": notes,
        "calls": rows,
    }


def print_summary(path: Path, *, as_json: bool) -> int:
    """Prints a sweep's ledger; the exit code."""
    found = summarize(path)
    if as_json:
        print(json.dumps(found, indent=1))
        return 0
    device = found["device"]["name"] if found["device"] else "an unknown device"
    print(_plain(f"{found['title']} on {device}: {found['done']:,} of {counted(found['total'], 'run')}"))
    rounds = any(row["round"] for row in found["calls"])
    for row in found["calls"]:
        values = ", ".join(f"{name} {value:,}" for name, value in row["values"].items())
        values = f"{values}, round {row['round'] + 1}" if rounds else values
        step = f"step {row['step_us']['median']:,.1f} us, n {row['step_us']['n']}" if row["step_us"] else "step unknown"
        first = f"first call {row['seconds']:.3f} s" if row["seconds"] is not None else "first call unknown"
        why = f" ({row['why']})" if row["why"] else ""
        print(_plain(f"{row['title']:24} {values:44} {row['told']}{why}; {first}; {step}"))
    for note in found["notes"]:
        print(_plain(f"note: {note}"))
    return 0


def _read(path: Path) -> tuple[SweepHead, list[Manifest], list[str]]:
    if not path.is_dir():
        head, points = sweepfile.unpack(path, trace_bytes_max=TRACE_BYTES_MAX)
        return head, [runfile.read_manifest(data) for data in points.values()], []
    head = sweepfile.read_head(path)
    manifests, notes = [], []
    for order in sweepfile.points_in(path):
        try:
            found = runfile.read_manifest(path / sweepfile.name_of(order))
        except RunFileError as error:
            notes.append(f"{sweepfile.name_of(order)}: {error}")
            continue
        problem = sweepfile.point_problem(head, order, found)
        if problem:
            notes.append(problem)
        else:
            manifests.append(found)
    return head, manifests, notes


def _plain(text: str) -> str:
    return "".join(c if c.isprintable() else "?" for c in text)  # a stranger's text could move the terminal's cursor
