"""The command line: `python -m core record | list | summary | doctor`. The same functions as the pages; no Streamlit, no dask."""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from core import health, health_checks, sweep_commands
from core.estimate import estimate, human_bytes
from core.shipped import Recording, shipped
from core.store.entry import Entry
from core.store.files import safe_name
from core.store.manifest import protocol_for
from core.store.runfile import RunFileError
from core.store.store import Store, default_home
from core.store.summary import summarize
from core.store.sweepfile import is_sweep
from core.store.sweeps import Sweeps
from core.trace import TraceError
from core.workload import Workload, WorkloadError, from_preset, make

ERROR = 2
_FRESH_MAX = 20


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command; the exit code: 0 done, 1 a run failed or the doctor found a problem, 2 it cannot be done as asked."""
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
    what.add_argument("--sweep", action="store_true", help="sizes one after another, on several backends; resumable")
    what.add_argument("--traffic", type=Path, metavar="FILE", help="a sweep over rows of batch, seq, count; resumable")
    what.add_argument("--shipped-sweeps", action="store_true", help="the sweeps that the project ships; resumable")
    record.add_argument("fields", nargs="*", metavar="NAME=VALUE", help="e.g. layer=geglu_mlp batch=16 backend=compile")
    record.add_argument("--fresh", type=_count, metavar="N", help="also compile in N fresh processes (default: 0)")
    record.add_argument("--out", type=Path, metavar="FOLDER", help="where run files go (default: your own store)")
    record.set_defaults(command=_record)
    listing = commands.add_parser("list", help="the runs and sweeps that are kept, newest first")
    listing.add_argument("--json", action="store_true")
    listing.set_defaults(command=_list)
    summary = commands.add_parser("summary", help="what a run file, a sweep or a Chrome trace holds")
    summary.add_argument("file", type=Path)
    summary.add_argument("--json", action="store_true")
    summary.set_defaults(command=_summary)
    doctor = commands.add_parser("doctor", help="try what live runs stand on; what is not in order, and what to do")
    doctor.add_argument("--json", action="store_true")
    doctor.set_defaults(command=_doctor)
    return parser


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) > _FRESH_MAX:
        raise argparse.ArgumentTypeError(f"a whole number from 0 to {_FRESH_MAX}, and {text[:20]!r} is none")
    return int(text)


def _record(options: argparse.Namespace) -> int:
    if importlib.util.find_spec("torch") is None:
        raise WorkloadError("Recording needs torch, which is not installed here; run make setup first.")
    if options.sweep or options.traffic is not None or options.shipped_sweeps:
        return _record_sweeps(options)
    recordings = _recordings(options)
    store = Store(default_home())
    if options.out is not None:
        options.out.mkdir(parents=True, exist_ok=True)
        store = Store(options.out, recordings=options.out)
    store.check_writable(options.out)
    failed = 0
    for index, recording in enumerate(recordings, 1):
        workload = recording.workload
        print(f"[{index}/{len(recordings)}] {workload.title}, {workload.steps} steps", flush=True)
        if options.shipped and _is_recorded(workload, store, options.out):
            print("    already recorded")
            continue
        entry = _record_one(recording, store, options.out)
        print(f"    {_line(entry)}\n    {entry.path}", flush=True)
        failed += entry.head.status == "failed"
        if entry.manifest.failure is not None and entry.manifest.failure.kind == "cuda_error":
            print("The GPU's context is lost, and only a new process can go on: run the same command again.")
            return 1
    return 1 if failed else 0


def _record_sweeps(options: argparse.Namespace) -> int:
    if options.fresh is not None:
        raise WorkloadError("--fresh is for single runs; of a sweep every point says what it compiled.")
    fields = _fields(options.fields)
    if options.shipped_sweeps:
        from core.shipped_sweeps import shipped_sweeps

        if fields:
            raise WorkloadError("The shipped sweeps are fixed; leave NAME=VALUE fields out.")
        wanted = shipped_sweeps()
    else:
        wanted = (sweep_commands.sweep_of(fields, options.traffic),)
    return sweep_commands.record(wanted, Sweeps(default_home(), own=options.out), once=options.shipped_sweeps)


def _record_one(recording: Recording, store: Store, out: Path | None) -> Entry:
    from core.bench.machine import rates, torch_device  # torch: only where something is really run
    from core.bench.run import run

    protocol = recording.protocol
    likely = estimate(
        recording.workload,
        rates(torch_device()),
        cold_compiles=protocol.cold_compiles,
        fresh_processes=protocol.fresh_process_compiles,
    )
    print(f"    predicted: {likely.seconds or 0.0:,.0f} s, {human_bytes(likely.memory_bytes)}", flush=True)
    data = run(recording.workload, recording.protocol, lambda text, done, total: print(f"    {text}", flush=True))
    return store.add(data, folder=out)


def _is_recorded(workload: Workload, store: Store, out: Path | None) -> bool:
    """Whether this device has a recording of it already, where the new one would go."""
    from core.bench.machine import describe_device  # torch: only where something is really run

    name = describe_device().name
    found = [e for e in store.of(workload) if e.head.status == "ok"]  # held-down clocks would be held down again
    return any(e.head.device.name == name and (out or not e.recorded) for e in found)


def _recordings(options: argparse.Namespace) -> tuple[Recording, ...]:
    if options.shipped:
        if options.fields or options.fresh is not None:
            raise WorkloadError("The shipped set is fixed; leave NAME=VALUE fields and --fresh out.")
        return shipped()
    fields = _fields(options.fields)
    workload = from_preset(options.preset, **fields) if options.preset else make(fields)
    return (Recording(workload, protocol_for(workload, options.fresh or 0)),)


def _fields(pairs: Sequence[str]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals:
            raise WorkloadError(f"{pair!r} is not NAME=VALUE, such as batch=16.")
        if name in fields:
            raise WorkloadError(f"{name[:40]!r} is given twice; leave one of them out.")
        fields[name] = value
    return fields


def _list(options: argparse.Namespace) -> int:
    store = Store(default_home())
    entries, sweeps = store.entries(), store.sweeps.entries()
    if options.json:
        rows: list[dict[str, Any]] = [
            {"id": e.head.id, "status": e.head.status, "recorded": e.recorded, "path": str(e.path)} for e in entries
        ]
        rows += [sweep_commands.listed(entry) for entry in sweeps]
        print(json.dumps(rows, indent=1))
        return 0
    for entry in entries:
        print(f"{safe_name(entry.head.id)}  {_line(entry)}")
    for sweep in sweeps:
        print(f"{sweep.head.id}  {sweep.head.sweep.title}: {len(sweep.done):,} of {sweep.total:,} points")
    return 0


def _line(entry: Entry) -> str:
    head = entry.head
    told = f"{head.workload.title} on {head.device.name}: {head.failure or head.status} ({head.seconds:.1f} s)"
    return "".join(c if c.isprintable() else "?" for c in told)  # a stranger's text could move the terminal's cursor


def _summary(options: argparse.Namespace) -> int:
    if is_sweep(options.file):
        return sweep_commands.print_summary(options.file, as_json=options.json)
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


def _doctor(options: argparse.Namespace) -> int:
    """The exit code: 1 where a check is a problem, 0 else; a warning or an unknown is none."""
    said = sys.stderr.isatty() and not options.json
    found = [health_checks.examine(Store(default_home()), "this command")]
    if health_checks.has_torch():
        found += _examined_with_torch(lambda text: print(f"{text} ...", file=sys.stderr) if said else None)
    checks = [check for examination in found for check in examination.checks]
    if options.json:
        print(msgspec.json.format(msgspec.json.encode(found), indent=1).decode())
    else:
        print(health.as_text(found))
        if not health_checks.has_torch():
            print("\ntorch is not installed, so nothing was profiled or compiled: recordings need none of it.")
        print(f"\n{health.counted(checks)}")
    return 1 if any(check.state == "problem" for check in checks) else 0


def _examined_with_torch(say: Callable[[str], None]) -> list[health.Examination]:
    """What torch's import came to and, where it can be imported, the checks that need it."""

    def imported() -> health.Finding:
        from core.bench import doctor

        return health.Finding("ok", f"{doctor.__name__} and all that it stands on is imported")

    say("Importing torch")
    remedy = "Install the pinned torch, and what is missing beside it, again."
    probe = health.Probe("Import of torch", "All that is live needs it.", imported, remedy, "make clean setup")
    start = health.tried(probe)
    found = [health.examined("this command", [start])]
    if start.state == "ok":
        from core.bench import doctor  # torch: only where something is really run

        found.append(doctor.examine(lambda text, done, total: say(text), "this command"))
    return found


if __name__ == "__main__":
    sys.exit(main())
