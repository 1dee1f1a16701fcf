"""What a sweep shows, in sentences computed from its points, most telling first."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import median

from core.analysis.breakeven import UNKNOWN, break_even
from core.analysis.ledger import PointFacts, SeriesFacts
from core.analysis.padding import padding
from core.analysis.points import (
    BUSY_HOST,
    GAPS_US,
    NOISE,
    OUTLASTS,
    PACED,
    cpu_sets_pace,
    outlasts_kernels,
    step_doubt,
)
from core.analysis.premium import premium
from core.analysis.products import products
from core.analysis.recompiles import COMPILED, JIT, RAN_EAGER, RECOMPILED, REUSED, LedgerRow, ledger
from core.analysis.sizes import kernel_changes
from core.analysis.stack import CLOCKS_ALIKE
from core.analysis.winmap import ALIKE, DEPENDS, WINS, Cell
from core.analysis.winmap import UNKNOWN as UNKNOWN_CELL
from core.analysis.wording import counted, listed, ordinal, percent, seconds, sizes_words, times
from core.roles import Role

#: Smaller differences of one kernel are no finding.
_WORTH_TELLING = 0.05


def findings(
    series: Sequence[SeriesFacts],
    axes: Sequence[str],
    roles: Sequence[Role],
    *,
    shared: bool,
    limit: int,
    width_name: str | None = None,
    fixed: Mapping[str, int] | None = None,
) -> tuple[str, ...]:
    """Sentences on a sweep or a replayed traffic. `limit` is the recompile limit that was set, `width_name` the size that is
    the length of a row where Liger pads rows, `fixed` the sizes that do not change; the rest as `recompiles.ledger` has it."""
    rows = ledger(series, axes, shared=shared, fixed=fixed)
    own = {one.name: [row for row in rows if row.series == one.name] for one in series}
    told: list[str | None] = [_silent(one, own[one.name], limit) for one in series]
    told += [_compiles(one, own[one.name]) for one in series if shared]
    told += [_jits(one, own[one.name], axes, width_name if shared else None) for one in series]
    told += [_padding(series, axes, role, width_name) for role in roles if not role.matmul]
    told += [_premium(series, axes, roles, shared=shared), *products(series, axes)]
    told += [
        f"{one.title} against {one.against_title}: {one.words}."
        for one in break_even(series, axes)
        if one.verdict != UNKNOWN and shared
    ]
    told += [_changes(series, axes, roles), *(_graphs(one, own[one.name]) for one in series)]
    told += [
        *(_failures(one, axes) for one in series),
        busy(series),
        outlasting(series),
        _clocks(series),
        _doubts(series),
    ]
    return tuple(one for one in told if one)


def map_findings(cells: Sequence[Cell], *, time: str) -> tuple[str, ...]:
    """Sentences on a win map by `time`: who is ahead in how many cells, and where by the most."""
    if not cells:
        return ()
    won = [cell for cell in cells if cell.verdict == WINS]
    titles = list(dict.fromkeys(cell.winner_title or "" for cell in won))
    counts = sorted(((sum(cell.winner_title == title for cell in won), title) for title in titles), reverse=True)
    waits = {title: sum(cell.winner_title == title and cell.paced for cell in won) for title in titles}
    parts = [
        f"{title} in {n}" + (f" (where the CPU sets the pace: {waits[title]})" if waits[title] else "")
        for n, title in counts
    ]
    rest = (
        (ALIKE, "has nobody ahead beyond the noise", "have nobody ahead beyond the noise"),
        (DEPENDS, "depends on the compile", "depend on the compile"),
        (UNKNOWN_CELL, "is unknown", "are unknown"),
    )
    verdicts = [cell.verdict for cell in cells]
    ahead = f"ahead are {', '.join(parts)}" if parts else "nobody is ahead anywhere"
    others = "".join(f"; {counted(verdicts.count(which), *words)}" for which, *words in rest if which in verdicts)
    told = [f"By {time}, of {counted(len(cells), 'measured cell')}: {ahead}{others}."]
    if won:
        most = max(won, key=lambda cell: cell.margin or 0.0)
        host = " (the CPU sets the pace there, not the GPU)" if most.paced else ""
        told.append(f"The widest margin, at {most.sizes}, is that of {most.words}{host}.")
    told += [f"At {cell.sizes} {cell.words}." for cell in cells if cell.verdict == DEPENDS][:1]
    causes = Counter(cell.cause for cell in cells if cell.cause)
    if causes:
        why = "; ".join(f"{cause} in {counted(n, 'cell')}" for cause, n in causes.most_common())
        told.append(f"Why cells are unknown: {why}.")
    paced = sum(cell.paced for cell in cells)
    if paced:
        told.append(
            f"In {paced} of {counted(len(cells), 'cell')} steps of some backend wait for the CPU: there they tell of the "
            "machine's CPU as much as of the kernels."
        )
    return tuple(told)


def _silent(one: SeriesFacts, rows: Sequence[LedgerRow], limit: int) -> str | None:
    eager = {row.values for row in rows if row.kind == RAN_EAGER}
    if not eager:
        return None
    hit = next((row for row in rows if row.kind == RAN_EAGER and _is_limited(one, row)), None)
    why = f": the limit of {limit} was hit at {hit.sizes}" if hit else "; why was not recorded"
    return f"{one.title} ran {len(eager)} of {counted(len({row.values for row in rows}), 'size')} eager without a word{why}."


def _is_limited(one: SeriesFacts, row: LedgerRow) -> bool:
    return any(
        point.call is not None and point.call.limit is not None for point in one.points if point.run_id == row.run_id
    )


def _compiles(one: SeriesFacts, rows: Sequence[LedgerRow]) -> str | None:
    """How often a process that lived through the list compiled, and what made it stop or go on."""
    compiled = [row for row in rows if row.kind in (COMPILED, RECOMPILED)]
    if not compiled:
        return None
    head = f"{one.title} compiled {times(len(compiled))} over {counted(len(rows), 'call')}"
    last = compiled[-1]
    after = [row.kind for row in rows if row.call > last.call]
    stopped = bool(after) and set(after) == {REUSED}
    if stopped and len(compiled) == 1 and compiled[0] is rows[0] and len({row.served_by for row in rows}) == 1:
        return f"{head}: its one entry served them all."
    opening = next((row for row in compiled if row.opened), None)
    told = [_opened(opening)] if opening else []
    if last.kind == RECOMPILED and last.reasons and last is not opening:
        told.append(f"last at the {ordinal(last.call)}, for {last.reasons[0].plain}")
    ended = " and then no more" if stopped else ", at every one of them" if len(compiled) == len(rows) > 1 else ""
    return f"{head}{ended}{': ' if told else ''}{'; '.join(told)}."


def _opened(row: LedgerRow) -> str:
    names = listed(row.opened)
    if row.kind == COMPILED:
        return f"{names} {'was' if len(row.opened) == 1 else 'were'} left open from the start"
    return f"{names} became dynamic at the {ordinal(row.call)}"


def _jits(one: SeriesFacts, rows: Sequence[LedgerRow], axes: Sequence[str], width_name: str | None) -> str | None:
    found = [row for row in rows if row.kind == JIT]
    if not found:
        return None
    known = [row.jit_s for row in found if row.jit_s is not None]
    took = f", {seconds(sum(known))} in all" if len(known) == len(found) else ""
    at = axes.index(width_name) if width_name in axes else None
    widths = {row.values[at] for row in rows} if at is not None else set()
    each = f": once for each new {width_name}" if widths and len(found) == len(widths) else ""
    return f"{one.title} had Triton compile {times(len(found))} over {counted(len(rows), 'call')}{took}{each}."


def _padding(
    series: Sequence[SeriesFacts],
    axes: Sequence[str],
    role: Role,
    width_name: str | None,
) -> str | None:
    if width_name is None:
        return None
    known = [row for row in padding(series, axes, role, width_name=width_name) if row.ratio is not None]
    worst = max(known, key=lambda row: row.ratio or 0.0, default=None)
    if worst is None or worst.is_noise or (worst.ratio or 0.0) < 1 + _WORTH_TELLING:
        least = min(known, key=lambda row: row.ratio or math.inf, default=None)
        if least is None or least.is_noise or (least.ratio or 1.0) > 1 - _WORTH_TELLING:
            return None
        return (
            f"At {least.sizes} the {role.title} takes {percent(1 - (least.ratio or 1.0))} less time on {least.title} than on "
            f"{least.against_title}, and nowhere {_WORTH_TELLING:.0%} more."
        )
    is_padded = worst.padded is not None and worst.padded > worst.width
    full = next((row for row in known if is_padded and row.series == worst.series and row.width == worst.padded), None)
    # A backend that is as far behind where nothing is padded is not behind for the padding.
    is_cause = is_padded and (full is None or (worst.ratio or 0.0) > (full.ratio or 0.0) * (1 + NOISE))
    why = f": its rows of {worst.width:,} are padded to {worst.padded:,}" if is_cause else ""
    beside = f" (at {full.sizes}, with nothing to pad, {full.ratio:.2f} times)" if full else ""
    what = f"the {role.title} takes {worst.ratio:.2f} times as long on {worst.title} as on {worst.against_title}"
    return f"At {worst.sizes} {what}{why}{beside}."


def _premium(series: Sequence[SeriesFacts], axes: Sequence[str], roles: Sequence[Role], *, shared: bool) -> str | None:
    rows = [row for row in premium(series, axes, roles, shared=shared) if row.ratio is not None]
    own = [row for row in rows if row.role is not None] or rows
    if not own:
        return None
    apart_rows = [row for row in own if not row.is_noise]
    if not apart_rows:
        return f"Leaving sizes open costs nothing beyond the noise: {own[0].role_title}, {counted(len(own), 'comparison')}."
    most = max(apart_rows, key=lambda row: abs((row.ratio or 1.0) - 1))
    change = (most.ratio or 1.0) - 1
    what = f"the {most.role_title} takes" if most.role is not None else "all kernels take"
    return (
        f"With sizes left open {what} up to {percent(abs(change))} {'more' if change > 0 else 'less'} time "
        f"({most.title} against {most.static_title}, at {most.sizes}, one compile each: the tuner's luck is in it); "
        f"beyond the noise in {len(apart_rows)} of {counted(len(own), 'comparison')}."
    )


def _changes(series: Sequence[SeriesFacts], axes: Sequence[str], roles: Sequence[Role]) -> str | None:
    found = kernel_changes(series, axes, [role for role in roles if role.matmul])
    if not found or not any(point.on_gpu for one in series for point in one.points):
        return None
    first = found[0]
    own = [one for one in found if (one.series, one.role) == (first.series, first.role)]
    return (
        f"The kernel of {first.role_title} changes {times(len(own))} with the size on {first.title}, "
        f"first between {first.before} and {first.after}."
    )


def _graphs(one: SeriesFacts, rows: Sequence[LedgerRow]) -> str | None:
    known = [row.cuda_graphs for row in rows if row.cuda_graphs is not None]
    recorded = sum(known)
    return (
        f"{one.title} recorded {counted(recorded, 'CUDA graph')} over {counted(len(known), 'call')}."
        if recorded
        else None
    )


def _failures(one: SeriesFacts, axes: Sequence[str]) -> str | None:
    failed = [point for point in one.points if point.failure is not None]
    if not failed:
        return None
    where = sizes_words(axes, failed[0].values)
    return (
        f"{one.title} failed at {len(failed)} of {counted(len(one.points), 'point')}, first at {where}: "
        f"{(failed[0].failure or '').rstrip('.')}."
    )


def busy(series: Sequence[SeriesFacts]) -> str | None:
    """How many step times tell of a busy host as much as of their backend, None where none does."""
    points = [point for one in series for point in one.points]
    busy = [point for point in points if step_doubt(point) is not None]
    if not busy:
        return None
    kernels = " Their kernel times are not touched by that." if all(point.on_gpu for point in busy) else ""
    return (
        f"The step times of {len(busy)} of {counted(len(points), 'point')} are shown and compared with none: "
        f"{BUSY_HOST}.{kernels}"
    )


def outlasting(series: Sequence[SeriesFacts]) -> str | None:
    """Where steps take longer than their kernels though the CPU does not set the pace, and whether they get longer within their
    burst; None where none does."""
    timed = [point for one in series for point in one.points if point.on_gpu and point.step_us and point.kernel_time_us]
    known = [point for point in timed if not cpu_sets_pace(point)]
    long = [point for point in known if outlasts_kernels(point)]
    if not long:
        return None
    most = max(
        point.step_us.median / point.kernel_time_us.median for point in long if point.step_us and point.kernel_time_us
    )
    paced = (
        f" (at {len(timed) - len(known)} more it takes longer than that: the CPU sets the pace)"
        if len(timed) > len(known)
        else ""
    )
    return (
        f"At {len(long)} of the {counted(len(known), 'point')} whose step takes at most {PACED:g} times its kernels{paced}, the "
        f"step takes over {OUTLASTS - 1:.0%} and {GAPS_US:.0f} µs longer than these, up to {percent(most - 1)}.{_slowing(long)} "
        "Kernel times and step times may name different winners there."
    )


def _slowing(long: Sequence[PointFacts]) -> str:
    """At how many of these points the steps begin at the pace of their kernels and get longer within their burst."""
    ends = {
        point.run_id: (first, last)
        for point in long
        if point.step_ends_us and point.kernel_time_us
        for first, last in [[end / point.kernel_time_us.median for end in point.step_ends_us]]
        if first <= OUTLASTS < last
    }
    if not ends:
        return ""
    read = [mhz for point in long if point.run_id in ends for mhz in point.step_clocks_mhz]
    span = " to ".join(f"{mhz:,}" for mhz in sorted({min(read), max(read)})) if read else ""
    clocks = f"clocks read meanwhile: {span} MHz" if read else "nobody read the clocks meanwhile"
    first, last = (median(values) for values in zip(*ends.values(), strict=True))
    other = len(long) - len(ends)
    rest = f" At the other {other} the burst begins longer already, or is too short to tell." if other else ""
    return (
        f" At {len(ends)} of these the steps get longer while they run back to back, from {first:.2f} to {last:.2f} times the "
        f"kernels (first and last fifth of the burst, medians), which a short profile does not see; why is unknown ({clocks})."
        f"{rest}"
    )


def _clocks(series: Sequence[SeriesFacts]) -> str | None:
    """How many profiles were taken at lower clocks than the best of them."""
    read = [min(point.clocks_mhz) for one in series for point in one.points if point.on_gpu and point.clocks_mhz]
    low = [mhz for mhz in read if max(read) > mhz * (1 + CLOCKS_ALIKE)]
    if not low:
        return None
    return (
        f"{len(low)} of {counted(len(read), 'point')} {'was' if len(low) == 1 else 'were'} profiled at {min(low):,}"
        f"{f' to {max(low):,}' if max(low) > min(low) else ''} MHz, the others at up to {max(read):,}: their times are shown and "
        "not compared with those."
    )


def _doubts(series: Sequence[SeriesFacts]) -> str | None:
    points = [point for one in series for point in one.points]
    doubtful = [point.doubt for point in points if point.doubt is not None]
    if not doubtful:
        return None
    return (
        f"{len(doubtful)} of {counted(len(points), 'point')} {'is' if len(doubtful) == 1 else 'are'} compared with none of the "
        f"others: {'; '.join(dict.fromkeys(doubtful))}."
    )
