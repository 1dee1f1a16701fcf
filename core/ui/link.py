"""The page's link: the workload's fields, the run and the step. The link is the state; widgets start from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from core.workload import Workload, to_fields

_WRITTEN = "link:written"
_STEP = "step"
_FOCUS = "focus"
_SEEN = "link:view"
#: Far above four run ids; beyond it a value is nobody's.
_VALUE_MAX = 1_000
_VIEW = (_STEP, _FOCUS)
#: What a link may carry beside a workload's fields.
EXTRAS = ("run", *_VIEW)


def read() -> dict[str, str]:
    """What the address bar says now."""
    return {name: str(value)[:_VALUE_MAX] for name, value in st.query_params.items()}


def arrived() -> bool:
    """Whether the link is new: the first run of this visit, or a link followed inside the page."""
    return st.session_state.get(_WRITTEN) != _state(read())


def last() -> dict[str, str]:
    """What the link said when this visit last wrote it: kept while the visitor looks at other pages."""
    return dict(st.session_state.get(_WRITTEN, {}))


def write(fields: Mapping[str, Any], *, run: str | None) -> None:
    """Puts the workload and its runs (their ids by commas) into the address bar; what is looked at of them stays."""
    now = read()
    wanted = {name: _text(value) for name, value in fields.items()} | ({"run": run} if run else {})
    if _state(now) != wanted:
        st.query_params.from_dict(wanted | {name: now[name] for name in _VIEW if name in now})
    st.session_state[_WRITTEN] = wanted


def step() -> str | None:
    """The step the link asks for: counted from 1, or "all"; unchecked."""
    return read().get(_STEP)


def view_arrived(name: str) -> bool:
    """Whether the address bar says something of the view (a step, a focus) that this visit has not taken up yet: a link
    was followed, or Back was pressed. Taken up by asking."""
    seen: dict[str, str | None] = st.session_state.setdefault(_SEEN, {})
    now = read().get(name)
    new = name not in seen or seen[name] != now
    seen[name] = now
    return new


def focus() -> str | None:
    """The backend the link looks into, of those it stacks; unchecked."""
    return read().get(_FOCUS)


def write_focus(backend: str) -> None:
    """Puts the backend that is looked into into the address bar."""
    _write_view(_FOCUS, backend)


def write_step(chosen: str) -> None:
    """Puts the step into the address bar."""
    _write_view(_STEP, chosen)


def _write_view(name: str, value: str) -> None:
    if read().get(name) != value:
        st.query_params[name] = value
    st.session_state.setdefault(_SEEN, {})[name] = value


def to_run(workload: Workload, run: str | None = None) -> dict[str, str]:
    """The query of a link to a workload, and to one of its runs."""
    fields = {name: _text(value) for name, value in to_fields(workload).items()}
    return {**fields, **({"run": run} if run else {})}


def to_stack(workload: Workload, backends: Sequence[str]) -> dict[str, str]:
    """The query of a link to a workload on several backends at once."""
    return {**to_run(workload), "backend": ",".join(backends)}


def _state(query: Mapping[str, str]) -> dict[str, str]:
    """What is shown; not which part of it is looked at, which widgets keep by themselves."""
    return {name: value for name, value in query.items() if name not in _VIEW}


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return str(value)
