"""The Shapes page's link: the sweep's fields, its id, and what is looked at. The link is the state; widgets start from it."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from core.sweep import Sweep, to_sweep_fields

ID = "sweep"
VIEW = "view"
BY = "by"
#: What is looked at of a sweep; the rest of the link says which sweep.
LOOKS = (VIEW, BY)
#: Longer lists of sizes, and traffic, stay out of a link: the id alone then names the sweep.
_FIELDS_MAX = 1_500
_VALUE_MAX = 1_500
_WRITTEN = "shapes:link:written"
_SEEN = "shapes:link:seen"


def read() -> dict[str, str]:
    """What the address bar says now."""
    return {name: str(value)[:_VALUE_MAX] for name, value in st.query_params.items()}


def arrived() -> bool:
    """Whether the link is new: the first run of this visit, or a link followed inside the page."""
    return st.session_state.get(_WRITTEN) != _which(read())


def last() -> dict[str, str]:
    """What the link said when this visit last wrote it."""
    return dict(st.session_state.get(_WRITTEN, {}))


def write(fields: Mapping[str, str], sweep_id: str | None) -> None:
    """Puts a sweep into the address bar, its id where one is on screen; what is looked at of it stays."""
    now = read()
    wanted = short(fields) | ({ID: sweep_id} if sweep_id else {})
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


def _which(query: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in query.items() if name not in LOOKS}
