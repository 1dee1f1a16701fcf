"""The page's link: the workload's fields, the run and the step. The link is the state; widgets start from it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import streamlit as st

from core.workload import Workload, to_fields

_WRITTEN = "link:written"
_STEP = "step"
#: What a link may carry beside a workload's fields.
EXTRAS = ("run", _STEP)


def read() -> dict[str, str]:
    """What the address bar says now."""
    return {name: str(value)[:200] for name, value in st.query_params.items()}


def arrived() -> bool:
    """Whether the link is new: the first run of this visit, or a link followed inside the page."""
    return st.session_state.get(_WRITTEN) != _without_step(read())


def last() -> dict[str, str]:
    """What the link said when this visit last wrote it: kept while the visitor looks at other pages."""
    return dict(st.session_state.get(_WRITTEN, {}))


def write(fields: Mapping[str, Any], *, run: str | None) -> None:
    """Puts the workload and its run into the address bar; the step stays as it is."""
    now = read()
    wanted = {name: _text(value) for name, value in fields.items()} | ({"run": run} if run else {})
    if _without_step(now) != wanted:
        st.query_params.from_dict(wanted | ({_STEP: now[_STEP]} if _STEP in now else {}))
    st.session_state[_WRITTEN] = wanted


def step() -> str | None:
    """The step the link asks for: counted from 1, or "all"; unchecked."""
    return read().get(_STEP)


def write_step(chosen: str) -> None:
    """Puts the step into the address bar."""
    if step() != chosen:
        st.query_params[_STEP] = chosen


def to_run(workload: Workload, run: str | None = None) -> dict[str, str]:
    """The query of a link to a workload, and to one of its runs."""
    fields = {name: _text(value) for name, value in to_fields(workload).items()}
    return {**fields, **({"run": run} if run else {})}


def _without_step(query: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in query.items() if name != _STEP}


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return str(value)
