"""Shapes: what happens as sizes change: what recompiles, who is ahead where, and when a compile pays back."""

import streamlit as st

from core.ui import chrome, notice, shapes, shapes_files, shapes_link, shapes_panel, shapes_pickers, shapes_views, words
from core.ui.shapes_data import shown


def main() -> None:
    """The page, top to bottom."""
    chrome.set_up("Shapes")
    # Streamlit forgets a page's pickers while the visitor is on another one, and Back brings the old link again.
    if shapes_link.arrived() or not shapes_pickers.are_set():
        shapes.follow_link()
    shapes.settle()
    now = shapes.found_for(shapes_pickers.fields_now())
    with st.sidebar:
        fields = shapes_pickers.show(shapes.at_hand(), None if now.stale or now.entry is None else now.entry.head.id)
    found = shapes.found_for(fields)
    for sentence in (notice.current("shapes", fields), found.problem):
        if sentence:
            st.warning(words.plain(sentence), icon=":material/info:")
    shapes_link.write(fields, found.entry.head.id if found.entry is not None and not found.stale else None)
    shapes_files.say_what_happened()
    seen = shown(found.entry) if found.entry is not None else None
    if seen is not None:
        shapes.title(seen)
    if found.stale:
        shapes.not_run_yet(found)
    shapes_panel.show(found)
    if seen is not None:
        with chrome.guarded():  # a view that fails must not hide how to delete what it fails on
            shapes_views.show(seen)
        shapes_files.actions(seen.entry)
    shapes_files.upload()
    shapes_files.problems()


with chrome.guarded():
    main()
