"""Explore: pick a workload and up to four backends, see the kernels of a run on each."""

from collections.abc import Sequence

import streamlit as st

from core.store.entry import Entry
from core.ui import chrome, explore, link, notice, pickers, run, runpanel, stack, words
from core.workload import Workload, WorkloadError


def main() -> None:
    """The page, top to bottom."""
    chrome.set_up("Explore")
    # Streamlit forgets a page's pickers while the visitor is on another one, and Back brings the old link again.
    new = link.arrived() or not pickers.are_set()
    if new:
        explore.follow_link()
    with st.sidebar:
        fields = pickers.show()
    told = notice.current("explore", fields)
    chosen: tuple[Workload, ...] = ()
    problem = None
    try:
        chosen = pickers.workloads(fields)
    except WorkloadError as error:
        problem = str(error)
    for sentence in (told, problem):
        if sentence:
            st.warning(words.plain(sentence), icon=":material/info:")
    found = explore.runs_to_show(chosen, fields["layer"])
    _missing(found, chosen)
    link.write(fields, run=None if found.stale else ",".join(found.ids))
    if chosen:
        runpanel.show(chosen, found.missing, live=all(entry.origin == "live" for entry in found.shown))
    if found.shown:
        _show(found.shown)


def _missing(found: explore.Found, chosen: Sequence[Workload]) -> None:
    """What stands at the top: which runs are on screen, and what of the pick is not there yet."""
    if not found.shown:
        st.info("There are no runs here yet. Pick sizes and press Run, or record with: python -m core record --shipped")
        return
    explore.title(found.shown)
    explore.pick_device(found, chosen)
    if found.missing:
        explore.not_run_yet(found)


def _show(shown: Sequence[Entry]) -> None:
    explore.say_mismatches(shown)
    if len(shown) > 1:
        stack.show(shown, link.step())
        st.divider()
    run.show(explore.focus(shown))


with chrome.guarded():
    main()
