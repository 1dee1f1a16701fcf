"""What leaves the page: a chart as a picture that says where it comes from, its table, and the run itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pandas as pd
import streamlit as st

from core.store.entry import Entry
from core.ui import words

_PICTURE = """
export default function ({ data, parentElement }) {
  const button = parentElement.querySelector('button');
  button.onclick = () => {
    const camera = document.querySelector('.st-key-' + data.holder + ' .modebar-btn[data-title^="Download"]');
    if (camera) camera.click();
  };
}
"""
_HTML = "<button title='A picture of the chart above, with device, versions and n in it'>Picture</button>"
_CSS = """
button { font: inherit; font-size: .9rem; color: inherit; background: transparent; cursor: pointer;
  border: 1px solid rgba(128, 128, 128, .4); border-radius: .5rem; padding: .35rem .8rem; }
button:hover, button:focus-visible { border-color: var(--st-primary-color); color: var(--st-primary-color); }
"""
# Plotly draws the picture in the browser, as it stands there: zoomed, light or dark.
_picture = st.components.v2.component("fusionscope_picture", js=_PICTURE, html=_HTML, css=_CSS)


def config(name: str, *, mode_bar: bool | str = "hover") -> dict[str, Any]:
    """The configuration of a chart that can be downloaded as a picture named `name`."""
    return {
        "displaylogo": False,
        "displayModeBar": mode_bar,
        "modeBarButtons": [["toImage"]],
        "showTips": False,
        "toImageButtonOptions": {"format": "png", "filename": name, "scale": 2},
    }


def picture(holder: str, name: str) -> None:
    """A button that saves the chart in the container of key `holder` as a picture, as it stands in the browser."""
    _picture(key=f"picture:{name}", data={"holder": holder}, width="content", height="content")


def row(
    holder: str, table: pd.DataFrame, entries: Sequence[Entry], *, name: str, units: Mapping[str, str] | None = None
) -> None:
    """Picture and table of a chart in the container of key `holder`. Each row of the table carries its run, device and
    versions: by its column `run`, or all of them those of the one entry. `units` gives columns without a unit in their name
    the name they have in the file."""
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        picture(holder, name)
        table_button(name, lambda: _csv(table, entries, units or {}), key=f"table:{name}")


def table_button(name: str, data: Callable[[], bytes], *, key: str) -> None:
    """A download of a table as CSV, made once it is asked for."""
    st.download_button(
        "Table (CSV)",
        data=data,
        file_name=f"fusionscope-{name}.csv",
        mime="text/csv",
        icon=":material/table:",
        on_click="ignore",
        type="tertiary",
        key=key,
        help="A row each, with its run's id, device and versions. Empty is unknown, or does not apply.",
    )


def _csv(table: pd.DataFrame, entries: Sequence[Entry], units: Mapping[str, str]) -> bytes:
    heads = {entry.head.id: entry.head for entry in entries}
    runs = table["run"] if "run" in table else pd.Series([entries[0].head.id] * len(table), index=table.index)
    told = table.rename(columns=units).assign(
        run=runs,
        device=[heads[run].device.name for run in runs],
        driver=[heads[run].device.driver for run in runs],
        **{name: [heads[run].versions.get(name) for run in runs] for name in ("torch", "triton", "liger_kernel")},
        layer=[heads[run].workload.layer for run in runs],
        picked=[words.picked(heads[run].workload) for run in runs],
        taken_utc=[heads[run].created for run in runs],
    )
    for name in told.select_dtypes(exclude="number"):
        told[name] = [words.cell(value) for value in told[name]]
    return bytes(told.to_csv(index=False).encode())
