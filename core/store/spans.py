"""When runs were measured: from the start of one to the end of another."""

from __future__ import annotations

import datetime
from collections.abc import Iterable

from core.store.manifest import Manifest

#: From when until when, in unix seconds.
Span = tuple[float, float]


#: A longer pause between two points is none of measuring: a process starts in seconds.
_PAUSE_S = 300.0


def without_pauses(spans: Iterable[Span]) -> tuple[Span, ...]:
    """The spans in order, those that follow each other as one, so that a sweep which was resumed days later is not taken for
    one that lasted days."""
    found: list[Span] = []
    for start, end in sorted(spans):
        if found and start - found[-1][1] <= _PAUSE_S:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        else:
            found.append((start, end))
    return tuple(found)


def overlap(one: Span, other: Span) -> bool:
    """Whether two spans have a moment in common."""
    return one[0] < other[1] and other[0] < one[1]


def span_of(first: Manifest, last: Manifest) -> Span:
    """From the start of the one run to the end of the other, in unix seconds."""
    return moment_s(first.created) - first.seconds, moment_s(last.created)


def moment_s(created: str) -> float:
    """A date of a manifest or a sweep in unix seconds."""
    return datetime.datetime.fromisoformat(created).timestamp()
