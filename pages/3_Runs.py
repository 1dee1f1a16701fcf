"""Runs: every run in the store, to filter, open, download, upload, keep and delete."""

import streamlit as st

from core.ui import chrome, runs, session


def main() -> None:
    """The page, top to bottom."""
    chrome.set_up("Runs")
    st.header("Runs", anchor=False, help=runs.HELP)
    listing, adding = st.container(), st.container()
    # Uploads are dealt with first, so that the list above them already holds the new runs.
    with adding:
        runs.upload()
    snapshot = session.store().snapshot()
    with listing:
        runs.say_what_happened()
        if snapshot.entries:
            runs.show(snapshot)
        else:
            runs.show_empty()
    runs.show_problems(snapshot)


with chrome.guarded():
    main()
