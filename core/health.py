"""What the doctor's checks are: probes carried out under a guard, their results in order and as text.

A check tries what a live run stands on. What it finds is its result, and so is an exception inside it.
"""

from __future__ import annotations

import getpass
import re
import socket
import sys
import time
import tomllib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from core.bench.failures import describe

State = Literal["ok", "warning", "problem", "unknown", "not needed"]
#: Worst first, each with its mark on the command line.
MARKS: dict[State, str] = {"problem": "x", "warning": "!", "unknown": "?", "ok": "ok", "not needed": "-"}
ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Finding:
    """What a probe saw. `remedy` is one sentence, `command` what to type for it; both None where all is in order."""

    state: State
    found: str
    remedy: str | None = None
    command: str | None = None


@dataclass(frozen=True)
class Probe:
    """A check before it is carried out: `look` tries the thing, `remedy` is what to do where looking itself fails."""

    name: str
    matters: str
    look: Callable[[], Finding]
    remedy: str
    command: str | None = None


@dataclass(frozen=True)
class Check:
    """The result of a check. `seconds` is how long it took by the host's clock; `failure` the kind of the exception that
    ended it, with its `log`; neither names the host, the user or the folders of their home."""

    name: str
    state: State
    found: str
    matters: str
    remedy: str | None = None
    command: str | None = None
    seconds: float | None = None
    failure: str | None = None
    log: str = ""


@dataclass(frozen=True)
class Examination:
    """Checks that were carried out together. `taken` is when they ended (ISO, UTC), `where` the process that did it."""

    where: str
    taken: str
    checks: tuple[Check, ...]


def tried(probe: Probe) -> Check:
    """Carries a probe out. Never raises: an exception is a problem with a sentence, a remedy and a log."""
    start = time.perf_counter()
    try:
        finding = probe.look()
    except Exception as error:  # noqa: BLE001  # whatever a broken install raises is this check's result
        known = describe(error)
        first_line = (str(error).strip().splitlines() or ["no message"])[0][:160]
        found = (
            known.sentence if known.kind != "unexpected" else f"It stopped with {type(error).__name__}: {first_line}"
        )
        return Check(
            name=probe.name,
            state="problem",
            found=private(found),
            matters=probe.matters,
            remedy=probe.remedy,
            command=probe.command,
            seconds=_since(start),
            failure=known.kind,
            log=private(known.log),
        )
    return Check(
        name=probe.name,
        state=finding.state,
        found=private(finding.found),
        matters=probe.matters,
        remedy=finding.remedy,
        command=finding.command,
        seconds=_since(start),
    )


def examined(where: str, checks: Iterable[Check]) -> Examination:
    """The checks with the time of now."""
    done = tuple(checks)
    return Examination(where, datetime.now(UTC).isoformat(timespec="seconds"), done)


def in_order(checks: Iterable[Check]) -> tuple[Check, ...]:
    """Problems first, then warnings, then what is unknown, then the rest; within each as they came."""
    states = list(MARKS)
    return tuple(sorted(checks, key=lambda check: states.index(check.state)))


def count(checks: Sequence[Check]) -> dict[State, int]:
    """How many checks are in each state, the worst first."""
    return {state: sum(check.state == state for check in checks) for state in MARKS}


def counted(checks: Sequence[Check]) -> str:
    """ "1 problem, 2 warnings, 0 unknown, 20 ok, 6 not needed"."""
    return ", ".join(so_many(state, number) for state, number in count(checks).items())


def so_many(state: State, number: int) -> str:
    """ "1 problem", "2 warnings", "20 ok"."""
    return f"{number} {state}{'s' if state in ('problem', 'warning') and number != 1 else ''}"


def private(text: str) -> str:
    """The text without the names of host and user, and without the folders they chose."""
    for path, name in ((sys.prefix, "<python>"), (str(ROOT), "<fusionscope>"), (str(Path.home()), "~")):
        if len(path) > 1:
            text = text.replace(path, name)
    text = re.sub(r"/(home|Users)/[^/\s\"']+", r"/\1/<user>", text)
    # A name like "root" or "gpu" is a word of every log; as a part of a longer path it was taken out above.
    for name in {socket.gethostname(), _user()} - {"root", "localhost", ""}:
        text = re.sub(rf"(?<![\w.-]){re.escape(name)}(?![\w-])", "<name>", text)
    return text


def as_text(examinations: Sequence[Examination], *, logs: bool = False) -> str:
    """The results as plain text, a line a check, what to do below it; `logs` adds the end of each failure's log."""
    lines = []
    for check in in_order(check for examination in examinations for check in examination.checks):
        lines.append(f"{MARKS[check.state]:>2}  {check.name}: {check.found}")
        if check.remedy:
            lines.append(f"      {check.remedy}")
        if check.command:
            lines.append(f"      $ {check.command}")
        if logs and check.log:
            lines += [f"      | {line}" for line in check.log.rstrip().splitlines()[-12:]]
    return "\n".join(lines)


def report(examinations: Sequence[Examination]) -> str:
    """What belongs into a bug report: this project's version, when and where each part was taken, results and logs."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    taken = [f"taken {one.taken} in {one.where}, {len(one.checks)} checks" for one in examinations]
    return "\n".join([f"FusionScope {project['version']}", *taken, "", as_text(examinations, logs=True)])


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container may run under an id that has no name
        return ""


def _since(start: float) -> float:
    return round(time.perf_counter() - start, 6)
