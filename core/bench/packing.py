"""From what was measured to a run file: what every run and every point of a sweep says of itself."""

from __future__ import annotations

import datetime
import secrets
import time
from dataclasses import dataclass, field
from typing import Any

from core.bench import machine
from core.store import runfile
from core.store.manifest import Compile, Failure, Manifest, Protocol
from core.store.point import Point
from core.workload import Workload


@dataclass
class Measured:
    """What has been measured so far; a failure keeps it. `fields` are the manifest's own, by name."""

    trace: bytes | None = None
    code: dict[str, str] = field(default_factory=dict)
    fields: dict[str, Any] = field(default_factory=dict)
    compiles: list[Compile] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    stages_s: dict[str, float] = field(default_factory=dict)
    started_s: float = field(default_factory=time.perf_counter)


def packed(
    workload: Workload,
    protocol: Protocol,
    measured: Measured,
    failure: Failure | None,
    *,
    run_id: str | None = None,
    point: Point | None = None,
) -> bytes:
    """The run file as bytes. A run that is no point of a sweep gets an id of its own."""
    status = "failed" if failure else "unsettled" if measured.fields.get("settled_why") else "ok"
    created = datetime.datetime.now(datetime.UTC)
    own_id = f"{workload.layer}-{workload.backend}-{workload.key}-{created:%Y%m%d%H%M%S}{secrets.token_hex(2)}"
    manifest = Manifest(
        id=run_id or own_id,
        workload=workload,
        protocol=protocol,
        created=created.isoformat(timespec="seconds"),
        status=status,
        device=machine.describe_device(),
        versions=machine.versions(),
        seconds=round(time.perf_counter() - measured.started_s, 3),
        compiles=tuple(measured.compiles),
        failure=failure,
        notes=tuple(measured.notes),
        stages_s=measured.stages_s,
        point=point,
        **measured.fields,
    )
    return runfile.pack(manifest, measured.trace, measured.code)
