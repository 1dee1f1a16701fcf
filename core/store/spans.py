"""When runs were measured: from the start of one to the end of another."""

from __future__ import annotations

import datetime

from core.store.manifest import Manifest

#: From when until when, in unix seconds.
Span = tuple[float, float]


def span_of(first: Manifest, last: Manifest) -> Span:
    """From the start of the one run to the end of the other, in unix seconds."""
    return _ended_s(first) - first.seconds, _ended_s(last)


def _ended_s(manifest: Manifest) -> float:
    return datetime.datetime.fromisoformat(manifest.created).timestamp()
