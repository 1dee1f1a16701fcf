"""What Liger's padding costs: its kernels give each row the next power of two of lanes, and lanes past its end idle."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from core.analysis.ledger import PointFacts, PointKernel, SeriesFacts
from core.analysis.points import VARIES, is_noise, kernels_apart
from core.analysis.spread import Spread
from core.analysis.wording import percent, size_name, sizes_words, us
from core.roles import Role

#: Liger's kernels take no wider rows in one piece (calculate_settings in liger_kernel/ops/utils.py).
WIDEST = 65_536
_NUMBER = re.compile(r"[0-9]{1,9}")


@dataclass(frozen=True)
class Padding:
    """One point of a series that runs Liger's kernels. `padded` is what a row takes in lanes: read off the kernel's own
    BLOCK_SIZE where its JIT compile was seen at this width (`is_read`), else the next power of two; `idle` is the share of
    lanes past the row's end (both None where the row is too wide for one block, and its blocks are unknown). `ratio` is its
    time for the role over that of the generated kernel of `against`, None where `words` says why it is unknown."""

    run_id: str
    series: str
    title: str
    index: int
    values: tuple[int, ...]
    sizes: str
    width_name: str
    width: int
    padded: int | None
    is_read: bool
    idle: float | None
    role_title: str
    liger_us: Spread | None
    against: str | None
    against_title: str | None
    against_run_id: str | None
    against_us: Spread | None
    ratio: float | None
    is_noise: bool
    words: str


def padding(series: Sequence[SeriesFacts], axes: Sequence[str], role: Role, *, width_name: str) -> tuple[Padding, ...]:
    """A row a point that does `role` in one of Liger's kernels, beside the first series that does it in a generated kernel.

    `width_name` is the size that is a row's length; where it is none of `axes` there are no rows, for at one width nothing
    tells the padding from what else differs. Kernels and not names of backends tell who is who.
    """
    blocks = _blocks(series, axes, width_name)
    rows = []
    for one in series:
        for point in one.points:
            own = _kernel(point, role, "liger")
            width = _width(point, axes, width_name)
            if own is None or width is None:
                continue
            block = blocks.get((own.name, width))
            rows.append(_row(one, point, _other(series, one, point, role), axes, role, width_name, width, block))
    return tuple(rows)


def padded_width(width: int, block: int | None) -> int | None:
    """Lanes that a row of `width` takes: whole blocks, or the next power of two where the block is unknown; None where a row is
    too wide for that."""
    if block is not None:
        return -(-width // block) * block
    found = 1 << max(0, width - 1).bit_length()
    return found if found <= WIDEST else None


def _width(point: PointFacts, axes: Sequence[str], name: str) -> int | None:
    return dict(zip(axes, point.values, strict=True)).get(name)


def _kernel(point: PointFacts, role: Role, family: str) -> PointKernel | None:
    return next((one for one in point.kernels if one.role == role.name and one.family == family), None)


def _blocks(series: Sequence[SeriesFacts], axes: Sequence[str], name: str) -> dict[tuple[str, int], int]:
    """BLOCK_SIZE by kernel and width, from the JIT compiles that were seen."""
    found = {}
    for point in (point for one in series for point in one.points if point.call):
        width = _width(point, axes, name)
        for jit in (point.call.jits if point.call else None) or ():
            block = jit.constexprs.get("BLOCK_SIZE", "")
            if width is not None and _NUMBER.fullmatch(block) and int(block) > 0:
                found[jit.kernel, width] = int(block)
    return found


def _other(
    series: Sequence[SeriesFacts], own: SeriesFacts, point: PointFacts, role: Role
) -> tuple[SeriesFacts, PointFacts] | None:
    """The same point of the first series that does the role in a kernel that Inductor generated."""
    return next(
        (
            (one, other)
            for one in series
            if one is not own and one.compiles
            for other in one.points
            if (other.index, other.round) == (point.index, point.round) and _kernel(other, role, "fused") is not None
        ),
        None,
    )


def _row(
    one: SeriesFacts,
    point: PointFacts,
    beside: tuple[SeriesFacts, PointFacts] | None,
    axes: Sequence[str],
    role: Role,
    width_name: str,
    width: int,
    block: int | None,
) -> Padding:
    padded = padded_width(width, block)
    liger_us = point.role_us.get(role.name)
    other, other_point = beside or (None, None)
    other_us = other_point.role_us.get(role.name) if other_point else None
    if other is None or other_point is None:
        why: str | None = "no generated kernel was measured at this size"
    elif liger_us is None or other_us is None or not other_us.median:
        why = "its time is unknown"
    elif liger_us.is_wide or other_us.is_wide:
        why = VARIES
    else:
        why = kernels_apart((point, other_point), (one.title, other.title))
    ratio = liger_us.median / other_us.median if why is None and liger_us and other_us else None
    alike = ratio is not None and liger_us is not None and other_us is not None and is_noise(liger_us, other_us)
    beside_words = _beside(role.title, liger_us, other_us, other, ratio, alike, why)
    return Padding(
        run_id=point.run_id,
        series=one.name,
        title=one.title,
        index=point.index,
        values=point.values,
        sizes=sizes_words(axes, point.values),
        width_name=width_name,
        width=width,
        padded=padded,
        is_read=block is not None,
        idle=1 - width / padded if padded else None,
        role_title=role.title,
        liger_us=liger_us,
        against=other.name if other else None,
        against_title=other.title if other else None,
        against_run_id=other_point.run_id if other_point else None,
        against_us=other_us,
        ratio=ratio,
        is_noise=alike,
        words=f"{size_name(width_name)} {width:,}: {_lanes(width, padded)}; {beside_words}",
    )


def _lanes(width: int, padded: int | None) -> str:
    if padded is None:
        return f"too wide for one block of {WIDEST:,}, how its rows are cut is unknown"
    if padded == width:
        return "no lane idles"
    return f"rows are padded to {padded:,}, {percent(1 - width / padded)} of the lanes idle"


def _beside(
    what: str,
    liger_us: Spread | None,
    other_us: Spread | None,
    other: SeriesFacts | None,
    ratio: float | None,
    alike: bool,
    why: str | None,
) -> str:
    if ratio is None or liger_us is None or other_us is None or other is None:
        return f"{what} against a generated kernel: unknown, {why}"
    times = f"{us(liger_us.median)} (n {liger_us.n}) against {us(other_us.median)} (n {other_us.n}) on {other.title}"
    return f"{what} {times}, {'no difference beyond the noise' if alike else f'{ratio:.2f} times'}"
