"""The command line: `python -m core record | list | summary`. The same functions as the pages; no Streamlit, no dask."""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from core.shipped import fresh_process_compiles, shipped_workloads
from core.store.manifest import protocol_for
from core.store.runfile import RunFileError
from core.store.store import Entry, Store, default_home, safe_name
from core.store.summary import summarize
from core.trace import TraceError
from core.workload import Workload, WorkloadError, from_preset, make

ERROR = 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command; the exit code: 0 done, 1 a run failed, 2 it cannot be done as asked."""
    options = _parser().parse_args(arguments)
    try:
        return int(options.command(options))
    except (WorkloadError, RunFileError, TraceError) as error:
        return _refuse(options, str(error))
    except BrokenPipeError:  # whoever read this output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        return _refuse(options, f"{error.filename or 'A file'} cannot be read or written: {error.strerror}.")


def _refuse(options: argparse.Namespace, sentence: str) -> int:
    if getattr(options, "json", False):
        print(json.dumps({"error": sentence}))
    else:
        print(sentence, file=sys.stderr)
    return ERROR


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m core", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="command")
    record = commands.add_parser("record", help="carry a workload out on this machine and keep the run")
    what = record.add_mutually_exclusive_group()
    what.add_argument("--preset", help="one of the article's scripts, e.g. 03_simple_mlp")
    what.add_argument("--shipped", action="store_true", help="the whole set that the project ships; resumable")
    record.add_argument("fields", nargs="*", metavar="NAME=VALUE", help="e.g. layer=geglu_mlp batch=16 backend=compile")
    record.add_argument(
        "--fresh", type=int, metavar="N", help="also compile in N fresh processes (default: 0, shipped: 3)"
    )
    record.add_argument("--out", type=Path, metavar="FOLDER", help="where run files go (default: your own store)")
    record.set_defaults(command=_record)
    listing = commands.add_parser("list", help="the runs that are kept, newest first")
    listing.add_argument("--json", action="store_true")
    listing.set_defaults(command=_list)
    summary = commands.add_parser("summary", help="what a run file or a Chrome trace holds")
    summary.add_argument("file", type=Path)
    summary.add_argument("--json", action="store_true")
    summary.set_defaults(command=_summary)
    return parser


def _record(options: argparse.Namespace) -> int:
    if importlib.util.find_spec("torch") is None:
        raise WorkloadError("Recording needs torch, which is not installed here; run make setup first.")
    workloads = _workloads(options)
    store = Store(default_home())
    if options.out is not None:
        options.out.mkdir(parents=True, exist_ok=True)
        store = Store(options.out, recordings=options.out)
    store.check_writable(options.out)
    failed = 0
    for index, workload in enumerate(workloads, 1):
        print(f"[{index}/{len(workloads)}] {workload.title}, {workload.steps} steps", flush=True)
        if options.shipped and _is_recorded(workload, store, options.out):
            print("    already recorded")
            continue
        fresh = (
            options.fresh if options.fresh is not None else fresh_process_compiles(workload) if options.shipped else 0
        )
        entry = _record_one(workload, fresh, store, options.out)
        print(f"    {_line(entry)}\n    {entry.path}", flush=True)
        failed += entry.manifest.status == "failed"
        if entry.manifest.failure is not None and entry.manifest.failure.kind == "cuda_error":
            print("The GPU's context is lost, and only a new process can go on: run the same command again.")
            return 1
    return 1 if failed else 0


def _record_one(workload: Workload, fresh: int, store: Store, out: Path | None) -> Entry:
    from core.bench.run import run  # torch: only where something is really run

    data = run(workload, protocol_for(workload, fresh), lambda text, done, total: print(f"    {text}", flush=True))
    return store.add(data, folder=out)


def _is_recorded(workload: Workload, store: Store, out: Path | None) -> bool:
    """Whether this device has a recording of it already, where the new one would go."""
    from core.bench.machine import describe_device  # torch: only where something is really run

    name = describe_device().name
    return any(e.manifest.device.name == name and (out or not e.recorded) for e in store.answers(workload))


def _workloads(options: argparse.Namespace) -> tuple[Workload, ...]:
    if options.shipped:
        if options.fields:
            raise WorkloadError("The shipped set is fixed; leave the NAME=VALUE fields out.")
        return shipped_workloads()
    fields: dict[str, Any] = {}
    for pair in options.fields:
        name, equals, value = pair.partition("=")
        if not equals:
            raise WorkloadError(f"{pair!r} is not NAME=VALUE, such as batch=16.")
        fields[name] = value
    workload = from_preset(options.preset, **fields) if options.preset else make(fields)
    return (workload,)


def _list(options: argparse.Namespace) -> int:
    entries = Store(default_home()).entries()
    if options.json:
        rows = [
            {"id": e.manifest.id, "status": e.manifest.status, "recorded": e.recorded, "path": str(e.path)}
            for e in entries
        ]
        print(json.dumps(rows, indent=1))
        return 0
    for entry in entries:
        print(f"{safe_name(entry.manifest.id)}  {_line(entry)}")
    return 0


def _line(entry: Entry) -> str:
    manifest = entry.manifest
    end = manifest.failure.sentence if manifest.failure else manifest.status
    return f"{manifest.workload.title} on {manifest.device.name}: {end} ({manifest.seconds:.1f} s)"


def _summary(options: argparse.Namespace) -> int:
    found = summarize(options.file)
    if options.json:
        print(json.dumps(found, indent=1))
        return 0
    if found["workload"]:
        print(
            f"{found['workload']['layer']} on {found['workload']['backend']}, {found['device']['name']}: {found['status']}"
        )
    if found["n_events"] is None:
        print("no trace")
    elif found["n_kernels"]:
        print(
            f"{found['n_kernels']} kernels in {found['n_events']} events, {found['kernel_time_us']:.3f} us of kernel time"
        )
    else:
        print(
            f"no GPU kernels in {found['n_events']} events: a profile of CPU work alone, or one that missed the GPU's"
        )
    for kernel in found["kernels"] or ():
        print(
            f"{kernel['sum_us']:12.3f} us  n {kernel['n']:5d}  median {kernel['median_us']:10.3f} us  {kernel['name'][:100]}"
        )
    for note in found["notes"] or ():
        print(f"note: {note}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
