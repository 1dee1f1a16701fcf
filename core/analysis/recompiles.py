"""The ledger read: what every call of a sweep compiled, reused or ran eager, why, and how many compiles there were by then."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from core.analysis.guards import NO_REASON, Reason, opened_sizes, reason
from core.analysis.ledger import Attempt, Call, Jit, PointFacts, SeriesFacts
from core.analysis.wording import listed, seconds, sizes_words

COMPILED, RECOMPILED, JIT, REUSED = "compiled", "recompiled", "triton jit", "reused"
RAN_EAGER, PLAIN, FAILED, UNKNOWN = "ran eager", "nothing to compile", "failed", "unknown"
#: What a call can come to, in the order of a legend.
OUTCOMES = (COMPILED, RECOMPILED, JIT, REUSED, RAN_EAGER, PLAIN, FAILED, UNKNOWN)


@dataclass(frozen=True)
class Compiled:
    """What one pass (forward or backward) of a call compiled, over all its graphs: seconds by stage, None where one of them is
    unknown. `disk_cache` is "hit", "miss" or "bypass", joined where the graphs differ."""

    entries: tuple[str, ...]
    guard_count: int | None
    dynamo_s: float | None
    aot_autograd_s: float | None
    inductor_s: float | None
    kernel_compile_s: float | None
    backward_s: float | None
    total_s: float | None
    disk_cache: str | None
    code: tuple[str, ...]


@dataclass(frozen=True)
class LedgerRow:
    """One call of one series. `call` counts from 1; `kind` is one of OUTCOMES, `outcome` says it in words.

    `served_by` are the entries that ran in the steps after it. `why` holds the reasons in plain words, None where nothing was
    compiled anew. `opened` are the sizes that became dynamic. `compiles` counts forward graphs compiled up to and with this
    call, `recompiles` those after the first call that compiled (None where every call starts in a fresh process),
    `backward_compiles` and `jits_so_far` backward graphs and JIT compiles of hand-written kernels; all None where it is
    unknown what this call did.
    """

    run_id: str
    series: str
    title: str
    call: int
    index: int
    round: int
    values: tuple[int, ...]
    sizes: str
    count: int
    kind: str
    outcome: str
    served_by: tuple[str, ...] | None
    reasons: tuple[Reason, ...]
    why: str | None
    opened: tuple[str, ...]
    now_dynamic: str | None
    forward: Compiled | None
    backward: Compiled | None
    graph_breaks: tuple[str, ...] | None
    cuda_graphs: int | None
    graph_calls_s: tuple[float, ...]
    jits: tuple[Jit, ...] | None
    jit_s: float | None
    first_call_s: float | None
    compiles: int | None
    recompiles: int | None
    backward_compiles: int | None
    jits_so_far: int | None


@dataclass(frozen=True)
class _SoFar:
    """Compiles before a call."""

    forward: int = 0
    again: int = 0
    backward: int = 0
    jits: int = 0


def ledger(
    series: Sequence[SeriesFacts], axes: Sequence[str], *, shared: bool, fixed: Mapping[str, int] | None = None
) -> tuple[LedgerRow, ...]:
    """A row a call and series, series after series, each in the order of its calls.

    `axes` name the sizes that change, `fixed` holds the others; `shared` says that one process lived through the list (else
    every compile is the first of its process)."""
    rounds = max((point.round for one in series for point in one.points), default=0) + 1
    rows = []
    for one in series:
        so_far = _SoFar()
        for point in sorted(one.points, key=lambda point: point.order):
            is_first = not shared or so_far.forward == 0
            so_far = _after(so_far, point.call, is_first)
            sizes = {**(fixed or {}), **dict(zip(axes, point.values, strict=True))}
            call = point.index * rounds + point.round + 1
            rows.append(_row(one, point, call, sizes, sizes_words(axes, point.values), is_first, so_far, shared))
    return tuple(rows)


def dynamic_entries(series: SeriesFacts) -> frozenset[str]:
    """The series' entries that were compiled with a size left open."""
    attempts = (one for point in series.points if point.call for one in point.call.compiles)
    return frozenset(one.entry for one in attempts if one.dynamic_dims)


def _after(so_far: _SoFar, call: Call | None, is_first: bool) -> _SoFar:
    if call is None:
        return so_far
    forward = sum(not one.backward for one in call.compiles)
    return _SoFar(
        so_far.forward + forward,
        so_far.again + (0 if is_first else forward),
        so_far.backward + sum(one.backward for one in call.compiles),
        so_far.jits + len(call.jits or ()),
    )


def _row(
    series: SeriesFacts,
    point: PointFacts,
    number: int,
    sizes: Mapping[str, int],
    words: str,
    is_first: bool,
    so_far: _SoFar,
    shared: bool,
) -> LedgerRow:
    call = point.call
    attempts = call.attempts if call else ()
    found = tuple(
        reason(miss, sizes, point.dims) for one in attempts if not one.backward for miss in dict.fromkeys(one.misses)
    )
    kind = _kind(series, point, is_first)
    opened = opened_sizes([dim for one in attempts if one.ok for dim in one.dynamic_dims], point.dims)
    return LedgerRow(
        run_id=point.run_id,
        series=series.name,
        title=series.title,
        call=number,
        index=point.index,
        round=point.round,
        values=point.values,
        sizes=words,
        count=point.count,
        kind=kind,
        outcome=_outcome(series, point, kind),
        served_by=call.served_by if call else None,
        reasons=found,
        why=_why(kind, found, call),
        opened=opened,
        now_dynamic=f"{listed(opened)} may now vary" if opened else None,
        forward=_compiled([one for one in attempts if not one.backward and one.ok]),
        backward=_compiled([one for one in attempts if one.backward and one.ok]),
        graph_breaks=call.graph_breaks if call else None,
        cuda_graphs=call.cuda_graphs if call else None,
        graph_calls_s=call.graph_calls_s if call else (),
        jits=call.jits if call else None,
        jit_s=_total([one.seconds for one in call.jits]) if call and call.jits else None,
        first_call_s=call.first_call_s if call else None,
        compiles=so_far.forward if call else None,
        recompiles=so_far.again if call and shared else None,
        backward_compiles=so_far.backward if call else None,
        jits_so_far=so_far.jits if call and call.jits is not None else None,
    )


def _kind(series: SeriesFacts, point: PointFacts, is_first: bool) -> str:
    call = point.call
    if call is None:
        return FAILED if point.failure else UNKNOWN
    if call.ran_eager:
        return RAN_EAGER
    if call.compiled_forward:
        return COMPILED if is_first else RECOMPILED
    if call.jits:
        return JIT
    if _broken(call):
        return FAILED
    if series.compiles:
        return REUSED if call.served_by else FAILED if point.failure else UNKNOWN
    if series.fuses:
        return REUSED if call.jits is not None else UNKNOWN
    return PLAIN


def _outcome(series: SeriesFacts, point: PointFacts, kind: str) -> str:
    """The outcome in words; a call that went through may still belong to a point that failed afterwards."""
    call = point.call
    if call is None:
        if point.measured_later and not point.failure:
            return "unknown: measured again after later sizes, in a process that had not lived through this list"
        return f"failed: {point.failure}" if point.failure else "unknown: the call was not recorded"
    told = [_first_word(series, call, kind)]
    if kind != JIT and call.jits:
        told.append(_jit_words(call.jits))
    if call.compiles and not call.compiled_forward:
        told.append("compiled its backward pass")
    if point.failure:
        told.append(f"failed: {point.failure}")
    return "; ".join(dict.fromkeys(one for one in told if one))


def _first_word(series: SeriesFacts, call: Call, kind: str) -> str:
    if kind == RAN_EAGER:
        if any(one.limit for one in call.attempts):
            return "ran eager, limit hit"
        return "ran eager, limit hit before" if call.limit else "ran eager"
    if kind == JIT:
        return _jit_words(call.jits or ())
    if kind == FAILED:
        broken = _broken(call)
        return f"failed: {broken.failed or 'PyTorch gave no reason'}" if broken else ""
    if kind == REUSED:
        return f"reused {', '.join(call.served_by or ())}" if series.compiles else "reused its Triton kernels"
    if kind == UNKNOWN:
        missing = "which compiled code ran" if series.compiles else "whether Triton compiled"
        return f"unknown: {missing} was not recorded"
    return kind


def _why(kind: str, reasons: Sequence[Reason], call: Call | None) -> str | None:
    if reasons:
        return "; ".join(dict.fromkeys(one.plain for one in reasons))
    if kind == RECOMPILED:
        return NO_REASON
    if kind == RAN_EAGER and call and call.limit and not call.attempts:
        return "the limit was hit before, and no entry serves this size"
    return None


def _broken(call: Call) -> Attempt | None:
    """A compile that failed, and not by a limit."""
    return next((one for one in call.attempts if not one.ok and not one.limit), None)


def _jit_words(jits: Sequence[Jit]) -> str:
    took = _total([one.seconds for one in jits])
    kernels = f"{len(jits)} kernels, " if len(jits) > 1 else ""
    return f"Triton JIT, {kernels}{seconds(took) if took is not None else 'unknown seconds'}"


def _compiled(attempts: Sequence[Attempt]) -> Compiled | None:
    if not attempts:
        return None
    caches = list(dict.fromkeys(one.disk_cache for one in attempts if one.disk_cache))
    counts = [one.guard_count for one in attempts]
    stages = {
        f"{name}_s": _total([one.stages_s.get(name) for one in attempts])
        for name in ("dynamo", "aot_autograd", "inductor", "kernel_compile", "backward", "total")
    }
    return Compiled(
        entries=tuple(one.entry for one in attempts),
        guard_count=None if None in counts else sum(count or 0 for count in counts),
        disk_cache=" and ".join(caches) or None,
        code=tuple(name for one in attempts for name in one.code),
        **stages,
    )


def _total(values: Sequence[float | None]) -> float | None:
    """The sum, None where a part of it is unknown."""
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None
