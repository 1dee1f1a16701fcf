"""One summary for runs and traces alike, as plain JSON values: what `python -m core summary` prints."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from core.analysis.spread import Spread, spread
from core.analysis.summary import trace_summary
from core.store import runfile
from core.store.manifest import Manifest, Samples
from core.trace import read_trace


def summarize(path: Path) -> dict[str, Any]:
    """The summary of a run file or a Chrome trace.

    Raises runfile.RunFileError or core.trace.TraceError, one sentence, for what cannot be read.
    """
    if path.is_dir():
        raise runfile.RunFileError(f"{path} is a folder; name a run file or a Chrome trace in it.")
    if path.exists() and not path.is_file():
        raise runfile.RunFileError(f"{path} is not a regular file; name a run file or a Chrome trace.")
    if not path.is_file():
        raise runfile.RunFileError(f"There is no file {path}; check the path.")
    if not runfile.is_zip(path):
        tables = read_trace(path)
        device = tables.meta["devices"][0].get("name") if tables.meta["devices"] else None
        return {**trace_summary(tables), **_run_fields(None), "device": {"name": device} if device else None}
    manifest = runfile.read_manifest(path)
    trace = runfile.read_trace_bytes(path)
    events = trace_summary(read_trace(trace)) if trace is not None else dict.fromkeys(_TRACE_FIELDS)
    return {**events, **_run_fields(manifest), "notes": [*(events["notes"] or ()), *_notes(manifest)]}


_TRACE_FIELDS = (
    "n_events",
    "n_kernels",
    "n_memcpy",
    "n_memset",
    "kernel_time_us",
    "gpu_busy_us_by_device",
    "kernels_linked_to_launch",
    "kernels_linked_to_op",
    "kernels",
    "notes",
)


def _run_fields(manifest: Manifest | None) -> dict[str, Any]:
    if manifest is None:
        return dict.fromkeys(
            ("id", "status", "workload", "step_us", "graph_replay_us", "compiles", "device", "versions")
        )
    return {
        "id": manifest.id,
        "status": manifest.status,
        "workload": msgspec.to_builtins(manifest.workload),
        "step_us": _spread(manifest.step_us),
        "graph_replay_us": _spread(manifest.graph_replay_us),
        "compiles": msgspec.to_builtins(manifest.compiles),
        "device": msgspec.to_builtins(manifest.device),
        "versions": dict(manifest.versions),
    }


def _spread(samples: Samples | None) -> dict[str, Any] | None:
    found: Spread | None = spread(samples.values) if samples else None
    return None if found is None or samples is None else {**msgspec.to_builtins(found), "how": samples.how}


def _notes(manifest: Manifest) -> list[str]:
    failure = [manifest.failure.sentence] if manifest.failure else []
    settled = [manifest.settled_why] if manifest.settled_why else []
    return [*manifest.notes, *failure, *settled]
