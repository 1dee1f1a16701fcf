"""What a run can say at all: numbers that a measurement gives, and names and dates as FusionScope writes them.

A stranger's file may hold anything of the right type; past here, no page needs to mind a negative time or a date that is none.
"""

from __future__ import annotations

import datetime
import itertools
import re
from collections.abc import Iterable, Iterator

from core.analysis.ledger import Call
from core.analysis.spread import Spread
from core.store.manifest import STATUSES, Manifest
from core.store.point import Point

_ID = re.compile(r"[A-Za-z0-9_-]{1,120}")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,9})?)?(Z|[+-][0-9]{2}:[0-9]{2})?")
#: A day; a run may take half an hour. No clock here tells less than a nanosecond, but nothing may take no time at all.
_SHORTEST_US, _LONGEST_US = 1e-3, 86_400e6
#: No clock of a GPU comes near.
_FASTEST_MHZ = 100_000
#: Thirty years: a compile takes hours at most, and nothing may overflow.
_LONGEST_S = 1e9
#: A Triton argument is a number, a flag or a type.
_CONSTEXPR_CHARS_MAX = 200
#: Percentiles are computed, and may differ in the last digit.
_ROUNDING = 1e-9


def impossible(manifest: Manifest) -> str | None:
    """What no run of FusionScope says, in one sentence; None where all is possible."""
    return next(_problems(manifest), None)


def is_date(text: str) -> bool:
    """Whether a text is a date and time as FusionScope writes them (ISO 8601)."""
    if not _DATE.fullmatch(text):
        return False
    try:
        datetime.datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError):  # a 13th month; a year that the clock does not have
        return False
    return True


def _problems(manifest: Manifest) -> Iterator[str]:
    if not _ID.fullmatch(manifest.id):
        yield "The run's name is none that FusionScope gives (letters, digits, - and _); the file was edited."
    samples = {"step_us": manifest.step_us, "graph_replay_us": manifest.graph_replay_us}
    for name, found in samples.items():
        if found is not None and not all(_SHORTEST_US <= value < _LONGEST_US for value in found.values):
            yield f"The run's {name} holds times that no run can take; the file was edited or is damaged."
    first_bytes = manifest.point.first_call_memory_bytes if manifest.point is not None else None
    if any(size is not None and size < 0 for size in (manifest.peak_memory_bytes, first_bytes)):
        yield "The run's peak memory is negative; the file was edited or is damaged."
    clocks = (*manifest.window_clocks, *manifest.step_clocks, *(manifest.load.clocks if manifest.load else ()))
    if not all(0 <= mhz <= _FASTEST_MHZ for one in clocks for mhz in (one.sm_mhz, one.memory_mhz) if mhz is not None):
        yield "The run's clocks are none that a GPU has; the file was edited or is damaged."
    if manifest.status not in STATUSES or not is_date(manifest.created):
        yield "The run's status or date is none that FusionScope writes; the file was edited or is damaged."
    spreads = [] if manifest.load is None else [manifest.load.step_us]
    seconds: list[float | None] = [manifest.seconds, *manifest.stages_s.values()]
    counts: list[float | None] = [manifest.profile_attempts]
    for compiled in manifest.compiles:
        seconds += [compiled.first_call_s, *compiled.stages_s.values()]
        counts.append(compiled.graph_breaks)
        spreads += [one for one in (compiled.kernel_time_us, *(kernel.true_us for kernel in compiled.kernels)) if one]
    yield from _of_numbers("run", seconds, counts, spreads)
    if manifest.point is not None:
        yield from _of_point(manifest.point)


def _of_point(point: Point) -> Iterator[str]:
    spreads = [*point.role_us.values(), *(kernel.time_us for kernel in point.kernels)]
    spreads += [point.kernel_time_us] if point.kernel_time_us is not None else []
    counts = [
        point.replayed,
        *(kernel.per_step for kernel in point.kernels),
        *(name.dim for name in point.dims),
    ]
    yield from _of_numbers("point", (), counts, spreads)
    if point.call is not None:
        yield from _of_call(point.call)


def _of_call(call: Call) -> Iterator[str]:
    jits = call.jits or ()
    stages = (second for attempt in call.attempts for second in attempt.stages_s.values())
    yield from _of_numbers(
        "call",
        (call.first_call_s, *call.graph_calls_s, *stages, *(jit.seconds for jit in jits)),
        (call.cuda_graphs, *(attempt.guard_count for attempt in call.attempts)),
        (),
    )
    for jit in jits:
        if any(not text.isascii() or len(text) > _CONSTEXPR_CHARS_MAX for text in jit.constexprs.values()):
            yield "The call names constexpr arguments that no Triton kernel takes; the file was edited or is damaged."


def _of_numbers(
    of: str, seconds: Iterable[float | None], counts: Iterable[float | None], spreads: Iterable[Spread]
) -> Iterator[str]:
    if not all(0 <= value <= _LONGEST_S for value in seconds if value is not None):
        yield f"The {of}'s seconds hold times that nothing can take; the file was edited or is damaged."
    if not all(0 <= value <= _LONGEST_S for value in counts if value is not None):
        yield f"The {of}'s counts hold numbers that nothing can have; the file was edited or is damaged."
    if not all(_is_spread(one) for one in spreads):
        yield f"The {of}'s spreads of times are none that a measurement gives; the file was edited or is damaged."


def _is_spread(found: Spread) -> bool:
    """Whether it is one of at least one time, in order."""
    steps = (0.0, found.min, found.p25, found.median, found.p75, found.max, _LONGEST_US)
    if any(0 < value < _SHORTEST_US for value in steps):
        return False
    return found.n >= 1 and all(low <= high * (1 + _ROUNDING) for low, high in itertools.pairwise(steps))
