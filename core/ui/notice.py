"""What was wrong with the link that a page last followed: said for as long as its pickers stand as the link left them."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st


def keep(page: str, told: str | None) -> None:
    """Remembers what to say on that page, None for nothing."""
    st.session_state[f"{page}:notice"] = told
    st.session_state.pop(f"{page}:noticed", None)


def current(page: str, fields: Mapping[str, str]) -> str | None:
    """What to say while the pickers hold these fields, None once somebody has changed them."""
    told: str | None = st.session_state.get(f"{page}:notice")
    if told is not None and st.session_state.setdefault(f"{page}:noticed", dict(fields)) != fields:
        st.session_state[f"{page}:notice"] = None
        return None
    return told
