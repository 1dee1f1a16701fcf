"""The dispatch tree as a table that reads like code: operators indented, and beside each what it launched."""

from __future__ import annotations

from html import escape

import streamlit as st

from core.analysis.dispatch import Launched, Node, dispatch_tree, rows
from core.charts.palette import colour, look, shorten
from core.glossary import explain, explain_row
from core.trace import Tables
from core.ui import chrome, words

_ROWS_MAX = 400
_INPUT_CHARACTERS = 40


def show(tables: Tables, step: int, *, on_gpu: bool) -> None:
    """Draws the tree of one step. On a CPU run nothing is launched, and the tree does not speak of it."""
    found = rows(dispatch_tree(tables, step))
    if not found:
        st.info("This step holds no operators.")
        return
    shown = found[:_ROWS_MAX]
    with_inputs = any(node.input_dims is not None for _, node in shown)
    body = "".join(_line(level, node, on_gpu, with_inputs) for level, node in shown)
    heads = _head("operator", explain("operator")) + _head(
        "CPU time", f"From its start to its end, with what it calls; {explain('profiled')}", "fs-time"
    )
    if with_inputs:
        heads += _head("sizes and strides of its inputs", f"{explain('input shapes')} {explain('strides')}")
    if on_gpu:
        heads += _head("launched on the GPU", explain("launch"))
    theme = look(chrome.is_dark())
    st.html(
        f"""<div style="overflow-x: auto"><style>
        .fs-tree {{ border-collapse: collapse; width: 100%; font-size: 0.88rem; color: {theme.text}; }}
        .fs-tree th {{ text-align: left; color: {theme.faint}; font-weight: 600; padding: 4px 10px; }}
        .fs-tree td {{ padding: 3px 10px; border-top: 1px solid {theme.grid}; vertical-align: top; }}
        .fs-tree .fs-name {{ font-family: monospace; white-space: nowrap; max-width: 24rem; overflow: hidden;
            text-overflow: ellipsis; }}
        .fs-tree .fs-time {{ text-align: right; white-space: nowrap; }}
        .fs-tree .fs-none {{ color: {theme.faint}; }}
        .fs-tree .fs-inputs {{ color: {theme.faint}; font-family: monospace; font-size: 0.78rem; line-height: 1.3;
            white-space: nowrap; max-width: 15rem; overflow: hidden; text-overflow: ellipsis; }}
        .fs-tree .fs-launched {{ min-width: 19rem; }}
        .fs-chip {{ display: inline-block; width: 0.8em; height: 0.8em; border-radius: 3px; margin-right: 6px; }}
        </style><table class="fs-tree"><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table></div>"""
    )
    if len(found) > _ROWS_MAX:
        st.caption(f"The first {_ROWS_MAX} of {len(found):,} operators; the timeline shows them all.")


def _head(title: str, told: str, css: str = "") -> str:
    return f"<th class='{css}' style='cursor:help' title='{escape(told, quote=True)}'>{title}</th>"


def _line(level: int, node: Node, on_gpu: bool, with_inputs: bool) -> str:
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
    if with_inputs:
        cells += f"<td class='fs-inputs'>{_inputs(node)}</td>"
    if not on_gpu:
        return f"<tr>{cells}</tr>"
    if node.launched:
        launched = "<br>".join(_launched(one) for one in node.launched)
    elif node.kind == "op" and not _launches(node):
        launched = "<span class='fs-none'>launches nothing</span>"
    else:
        launched = ""
    return f"<tr>{cells}<td class='fs-launched'>{launched}</td></tr>"


def _inputs(node: Node) -> str:
    if node.input_dims is None:
        return ""
    whole = f"sizes {node.input_dims}; strides {node.input_strides or words.UNKNOWN}"
    strides = f"<br>{_tensors(node.input_strides)}" if node.input_strides else ""
    return f"<span style='cursor:help' title='{escape(whole, quote=True)}'>{_tensors(node.input_dims)}{strides}</span>"


def _tensors(text: str) -> str:
    """The inputs without the empty brackets of those at the end that are no tensors."""
    kept = text
    while kept.endswith(" []"):
        kept = kept.removesuffix(" []")
    return escape(shorten(kept, _INPUT_CHARACTERS))


def _launches(node: Node) -> bool:
    return bool(node.launched) or any(_launches(child) for child in node.children)


def _launched(one: Launched) -> str:
    tint = colour(one.family, one.kernel_name)
    whole = escape(f"{one.kernel_name}, through {one.launch_name}", quote=True)
    return (
        f"<span style='word-break: break-all' title='{whole}'><span class='fs-chip' style='background:{tint}'></span>"
        f"{words.time(one.kernel_us)}&ensp;<code>{escape(shorten(one.kernel_name, 48))}</code></span>"
    )
