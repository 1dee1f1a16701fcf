"""The cache entries of a sweep on the page: guards and generated code of each, and what differs between two."""

from __future__ import annotations

import difflib
from dataclasses import dataclass

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.analysis.ledger import Attempt, PointFacts, SeriesFacts
from core.glossary import explain
from core.store import runfile
from core.store.runfile import RunFileError
from core.ui import session, words
from core.ui.shapes_data import Shown, link_to_run, point_words

_WHAT = {"code": "Generated code", "guards": "Guards"}
_ALWAYS_DIFFER = ("# kernel path:", "# AOT ID:")
_LINES_OF_CONTEXT = 3
_LINES_SHOWN = 16


@dataclass(frozen=True)
class CacheEntry:
    """One compile of one series that produced code, with the point that set it off."""

    series: SeriesFacts
    point: PointFacts
    attempt: Attempt
    title: str


def entries(found: Shown) -> tuple[CacheEntry, ...]:
    """Every entry of the sweep, series after series, in the order in which they were compiled."""
    listed = []
    for series in found.series:
        for point in sorted(series.points, key=lambda one: one.order):
            for attempt in point.call.compiles if point.call else ():
                at = f"{point_words(found.sweep, point.values)}"
                again = f", round {point.round + 1}" if found.sweep.rounds > 1 else ""
                half = ", backward" if attempt.backward else ""
                title = f"{series.title}, entry {attempt.entry}{half}, made at {at} (call {point.index + 1}{again})"
                listed.append(CacheEntry(series, point, attempt, title))
    return tuple(listed)


def show(found: Shown) -> None:
    """Two entries beside each other: what differs between them, and each in full."""
    st.subheader("Cache entries", anchor="entries", help=f"{explain('cache entry')} {explain('guard')}")
    listed = entries(found)
    if not listed:
        st.info("Nothing was compiled here, so there are no entries.", icon=":material/info:")
        return
    left, right = st.columns(2)
    first = _pick("Entry", "a", listed, 0, left)
    second = _pick("Compare with", "b", listed, _other(listed), right)
    what = st.segmented_control(
        "Look at", list(_WHAT), format_func=_WHAT.__getitem__, default="code", required=True, key="shapes:entry:what",
        help=f"{explain('guard')} The code is what Inductor wrote.",
    )  # fmt: skip
    texts = [_text(found, one, what) for one in (first, second)]
    if first is not second:
        _difference(texts, first, second, what)
    for one, text in zip((first, second) if first is not second else (first,), texts, strict=False):
        guards = one.attempt.guard_count
        told = f"{guards:,} guards" if guards is not None else "guard count unknown"
        with st.expander(words.plain(f"{one.title}: {told}, {len(text.splitlines()):,} lines")):
            link_to_run(found, one.point.run_id)
            st.code(text, language="python", line_numbers=True, height=480)


def _pick(title: str, name: str, listed: tuple[CacheEntry, ...], first: int, place: DeltaGenerator) -> CacheEntry:
    at: int = place.selectbox(
        title, list(range(len(listed))), index=first, format_func=lambda index: listed[index].title,
        key=f"shapes:entry:{name}:{len(listed)}", help=explain("cache entry"),
    )  # fmt: skip
    return listed[at]


def _other(listed: tuple[CacheEntry, ...]) -> int:
    """The first entry of another backend or size than the first one's, of the same pass: another round of the same size is
    the same code."""
    first = listed[0]
    own = (first.series.name, first.point.values)
    for at, one in enumerate(listed):
        if (one.series.name, one.point.values) != own and one.attempt.backward == first.attempt.backward:
            return at
    return min(1, len(listed) - 1)


def _comparable(text: str) -> list[str]:
    """The lines without those that always differ: where the code lay on the disk, and the number of its graph."""
    return [line for line in text.splitlines() if not line.startswith(_ALWAYS_DIFFER)]


def _difference(texts: list[str], first: CacheEntry, second: CacheEntry, what: str) -> None:
    lines = difflib.unified_diff(
        _comparable(texts[0]), _comparable(texts[1]), first.title, second.title, lineterm="", n=_LINES_OF_CONTEXT
    )
    difference = "\n".join(lines)
    if difference:
        is_long = difference.count("\n") > _LINES_SHOWN
        st.code(difference, language="diff", height=460 if is_long else "content")
    else:
        st.caption(f"Both have the same {_WHAT[what].lower()}, line for line.")


def _text(found: Shown, one: CacheEntry, what: str) -> str:
    if what == "guards":
        return "\n".join(one.attempt.guards) or "# Dynamo listed no guards of this entry."
    run = session.sweeps().run(one.point.run_id)
    if run is None:
        return "# The run file of this point is gone."
    try:
        sources = runfile.read_code(run.path)
    except RunFileError as error:
        return f"# The code is unknown: {error}"
    known = [sources[name] for name in one.attempt.code if name in sources]
    return "\n\n".join(known) or "# The run file holds no code of this entry."
