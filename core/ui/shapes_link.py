"""The Shapes page's link: the sweep's fields, its id, and what is looked at. The link is the state; widgets start from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import streamlit as st

from core.layers import LAYERS
from core.sweep import Sweep, holds, to_sweep_fields
from core.ui import link, session
from core.workload import Workload

ID = "sweep"
VIEW = "view"
BY = "by"
#: What is looked at of a sweep; the rest of the link says which sweep.
LOOKS = (VIEW, BY)
#: Longer lists of sizes, and traffic, stay out of a link that this page writes: the id alone then names the sweep.
_FIELDS_MAX = 1_500
#: Far above any list of sizes, and any traffic; a longer value of a link is left out whole.
_VALUE_MAX = 8_000
#: What a link may name of some sweep, beside its id and what is looked at.
_FIELDS = {
    *("kind", "layer", "backends", "dtype", "passes", "steps", "seed", "mode", "cache", "mark", "limit"),
    *("axis", "values", "axis2", "values2", "rows"),
    *(size.name for layer in LAYERS for size in layer.sizes),
    *(flag.name for layer in LAYERS for flag in layer.flags),
}
_WRITTEN = "shapes:link:written"
_PICKED = "shapes:link:picked"
_SEEN = "shapes:link:seen"


def read() -> dict[str, str]:
    """What the address bar says now."""
    return {name: str(value) for name, value in st.query_params.items()}


def asked() -> tuple[dict[str, str], str | None]:
    """What the link asks for, or, where it asks for nothing, what this visit last picked; and a sentence about what of it is
    left out: names that no sweep has, and values that are too long. Never a part of a value: half a list is another list."""
    given = read()
    if not _which(given):
        return given | last(), None
    known = {name: value for name, value in given.items() if name in _FIELDS or name in (ID, *LOOKS)}
    kept = {name: value for name, value in known.items() if len(value) <= _VALUE_MAX}
    long = next((name for name in known if name not in kept), None)
    if long is not None:
        kept = {name: kept[name] for name in (ID, *LOOKS) if name in kept} if ID in kept else kept
        return kept, (
            f"The link's {long} has {len(known[long]):,} characters, more than any sweep's; it is left out: type it in, or "
            "upload the sweep."
        )
    strange = next((name for name in given if name not in known), None)
    return (
        kept,
        f"The link names {strange[:40]!r}, which no sweep has; it is left out." if strange is not None else None,
    )


def arrived() -> bool:
    """Whether the link is new: the first run of this visit, or a link followed inside the page."""
    return st.session_state.get(_WRITTEN) != _which(read())


def last() -> dict[str, str]:
    """What this visit last picked, also where a link has no room for it."""
    return dict(st.session_state.get(_PICKED, {}))


def write(fields: Mapping[str, str], sweep_id: str | None) -> None:
    """Puts a sweep into the address bar, its id where one is on screen; what is looked at of it stays."""
    now = read()
    named = {ID: sweep_id} if sweep_id else {}
    st.session_state[_PICKED] = dict(fields) | named
    wanted = short(fields) | named
    if _which(now) != wanted:
        st.query_params.from_dict(wanted | {name: now[name] for name in LOOKS if name in now})
    st.session_state[_WRITTEN] = wanted


def to_sweep(sweep: Sweep, sweep_id: str | None = None) -> dict[str, str]:
    """The query of a link to a sweep, and to one that was carried out."""
    return short(to_sweep_fields(sweep)) | ({ID: sweep_id} if sweep_id else {})


def short(fields: Mapping[str, str]) -> dict[str, str]:
    """The fields where they fit into a link, else none."""
    return dict(fields) if sum(map(len, fields.values())) <= _FIELDS_MAX else {}


def look_arrived(name: str) -> bool:
    """Whether the address bar says something of the view that this visit has not taken up yet. Taken up by asking."""
    seen: dict[str, str | None] = st.session_state.setdefault(_SEEN, {})
    now = read().get(name)
    new = name not in seen or seen[name] != now
    seen[name] = now
    return new


def write_look(name: str, value: str) -> None:
    """Puts what is looked at into the address bar."""
    if read().get(name) != value:
        st.query_params[name] = value
    st.session_state.setdefault(_SEEN, {})[name] = value


def to_sizes(workload: Workload, backends: Sequence[str]) -> dict[str, str]:
    """The query of a link from a workload to what happens as its sizes change: a sweep at hand that comes to it, else one
    yet to be run, on those backends."""
    at_hand = [one for one in session.sweeps().entries() if holds(one.head.sweep, workload)]
    best = max(at_hand, key=lambda one: (one.head.sweep.kind == "sweep", len(one.done)), default=None)
    if best is not None:
        return {ID: best.head.id}
    fields = link.to_run(workload)
    return {name: fields[name] for name in fields if name in _FIELDS and name != "steps"} | {
        "backends": ",".join(backends)
    }


def _which(query: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in query.items() if name not in LOOKS}
