"""When runs were measured: from the start of one to the end of another."""

from __future__ import annotations

import datetime

from core.store.manifest import Manifest

#: From when until when, in unix seconds.
Span = tuple[float, float]


def span_of(first: Manifest, last: Manifest) -> Span:
    """From the start of the one run to the end of the other, in unix seconds."""
    return moment_s(first.created) - first.seconds, moment_s(last.created)


def moment_s(created: str) -> float:
    """A date of a manifest or a sweep in unix seconds."""
    return datetime.datetime.fromisoformat(created).timestamp()
