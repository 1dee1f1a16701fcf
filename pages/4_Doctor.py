"""Doctor: tries what live runs stand on, says what was found, and what to do where it is not in order."""

import streamlit as st

from core.ui import chrome, doctor


def main() -> None:
    """The page, top to bottom."""
    chrome.set_up("Doctor")
    st.title(
        "Doctor", anchor=False, help="Each check tries the thing itself: it compiles, writes, profiles or launches."
    )
    st.markdown("Does something not do what you expect? Here is what a run stands on, tried on this machine.")
    doctor.show()


with chrome.guarded():
    main()
