"""The dispatch tree as a table that reads like code: operators indented, and beside each what it launched."""

from __future__ import annotations

from html import escape

import streamlit as st

from core.analysis.dispatch import Launched, Node, dispatch_tree, rows
from core.charts.palette import colour, look, shorten
from core.glossary import explain_row
from core.trace import Tables
from core.ui import chrome, words

_ROWS_MAX = 400


def show(tables: Tables, step: int, *, on_gpu: bool) -> None:
    """Draws the tree of one step. On a CPU run nothing is launched, and the tree does not speak of it."""
    found = rows(dispatch_tree(tables, step))
    if not found:
        st.info("This step holds no operators.")
        return
    body = "".join(_line(level, node, on_gpu) for level, node in found[:_ROWS_MAX])
    heads = "<th>operator</th><th class='fs-time'>CPU time</th>" + ("<th>launched on the GPU</th>" if on_gpu else "")
    theme = look(chrome.is_dark())
    st.html(
        f"""<div style="overflow-x: auto"><style>
        .fs-tree {{ border-collapse: collapse; width: 100%; font-size: 0.88rem; color: {theme.text}; }}
        .fs-tree th {{ text-align: left; color: {theme.faint}; font-weight: 600; padding: 4px 10px; }}
        .fs-tree td {{ padding: 3px 10px; border-top: 1px solid {theme.grid}; vertical-align: top; }}
        .fs-tree .fs-name {{ font-family: monospace; white-space: nowrap; }}
        .fs-tree .fs-time {{ text-align: right; white-space: nowrap; }}
        .fs-tree .fs-none {{ color: {theme.faint}; }}
        .fs-chip {{ display: inline-block; width: 0.8em; height: 0.8em; border-radius: 3px; margin-right: 6px; }}
        </style><table class="fs-tree"><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table></div>"""
    )
    if len(found) > _ROWS_MAX:
        st.caption(f"The first {_ROWS_MAX} of {len(found):,} operators; the timeline shows them all.")


def _line(level: int, node: Node, on_gpu: bool) -> str:
    indent = f"padding-left: {10 + 22 * level}px"
    faint = " fs-none" if node.kind == "annotation" else ""
    name = escape(shorten(node.name, 38))
    sentence = explain_row(node.name)
    told = escape(node.name + (f": {sentence}" if sentence else ""), quote=True)
    mark = " text-decoration: underline dotted; cursor: help" if sentence else ""
    cells = (
        f"<td class='fs-name{faint}' style='{indent}'><span style='{mark}' title='{told}'>{name}</span></td>"
        f"<td class='fs-time'>{words.time(node.dur_us)}</td>"
    )
    if not on_gpu:
        return f"<tr>{cells}</tr>"
    if node.launched:
        launched = "<br>".join(_launched(one) for one in node.launched)
    elif node.kind == "op" and not _launches(node):
        launched = "<span class='fs-none'>launches nothing</span>"
    else:
        launched = ""
    return f"<tr>{cells}<td>{launched}</td></tr>"


def _launches(node: Node) -> bool:
    return bool(node.launched) or any(_launches(child) for child in node.children)


def _launched(one: Launched) -> str:
    tint = colour(one.family, one.kernel_name)
    whole = escape(f"{one.kernel_name}, through {one.launch_name}", quote=True)
    return (
        f"<span style='word-break: break-all' title='{whole}'><span class='fs-chip' style='background:{tint}'></span>"
        f"{words.time(one.kernel_us)} <code>{escape(shorten(one.kernel_name, 48))}</code></span>"
    )
