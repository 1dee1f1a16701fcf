"""Which colour is which family, with the family's sentence on hover."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

import streamlit as st

from core.analysis.families import FAMILIES
from core.charts.palette import FAMILY_COLOURS, look
from core.glossary import explain
from core.ui import chrome

_CPU = (
    ("op", "Operator on the CPU", explain("operator")),
    ("annotation", "Annotation", "A label that the profiler or the program put around some work."),
    ("launch", "Launch call", explain("launch")),
)


def show(families: Iterable[str]) -> None:
    """A line of chips for the families that are in sight."""
    wanted = set(families)
    chips = "".join(
        f"<span title='{escape(sentence, quote=True)}' style='margin-right:1.2em; white-space:nowrap; cursor:help'>"
        f"<span style='display:inline-block; width:.8em; height:.8em; border-radius:3px; margin-right:.4em; "
        f"background:{FAMILY_COLOURS[key]}'></span>{escape(title)}</span>"
        for key, title, sentence in (*FAMILIES, *_CPU)
        if key in wanted
    )
    st.html(f"<div style='font-size:.95rem; color:{look(chrome.is_dark()).text}; line-height:1.9'>{chips}</div>")
