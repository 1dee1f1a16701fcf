"""What every page wears: its set-up, the theme, and the guard that no traceback gets past."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator

import streamlit as st

from core.charts.palette import look

log = logging.getLogger("fusionscope")

#: Wide enough for the whole name of a picked backend, and no wider: the charts want the rest.
_SIDEBAR_PX = 336
_STYLE = """
<style>
  [data-testid="stMainBlockContainer"] { padding-top: 3.2rem; padding-inline: clamp(1rem, 3vw, 5rem); max-width: 1800px; }
  /* where the numbers come from stays in sight while the page scrolls */
  div:has(> .st-key-origin) { position: sticky; top: 0; z-index: 90; background: GROUND; }
  .st-key-origin { padding: .35rem 0; }
  [data-testid="stMetricValue"] { font-size: 1.7rem; }
  [data-testid="stMetricLabel"] p { font-size: 0.95rem; }
  [data-testid="stSidebar"] [data-testid="stVerticalBlock"] { gap: 0.6rem; }
  /* every picked backend in sight */
  [data-testid="stSidebar"] [data-testid="stMultiSelect"] div { max-height: none; }
</style>
"""


def set_up(title: str) -> None:
    """The first call of every page."""
    st.set_page_config(
        page_title=f"{title} · FusionScope", page_icon="🔬", layout="wide", initial_sidebar_state=_SIDEBAR_PX
    )
    st.html(_STYLE.replace("GROUND", look(is_dark()).ground))
    with st.sidebar:
        st.page_link("app.py", label="Home", icon=":material/home:")
        st.page_link("pages/1_Explore.py", label="Explore", icon=":material/search:")
        st.page_link("pages/2_Shapes.py", label="Shapes", icon=":material/stacked_line_chart:")
        st.page_link("pages/3_Runs.py", label="Runs", icon=":material/list:")
        st.page_link("pages/4_Doctor.py", label="Doctor", icon=":material/stethoscope:")
        st.divider()


def is_dark() -> bool:
    """Whether the visitor's page is dark."""
    return st.context.theme.type == "dark"


@contextlib.contextmanager
def guarded() -> Iterator[None]:
    """What nobody expected is logged whole, and said on the page as a short apology with a way on."""
    try:
        yield
    except Exception:  # the last wall before a visitor
        log.exception("a page failed")
        st.error(
            "Sorry, this part of the page failed unexpectedly; the server's log has the details. "
            "Reload the page, or go back to the first view."
        )
        st.page_link("pages/1_Explore.py", label="Back to the first view")
