"""What is done with whole sweeps on the Shapes page: one zip out, one zip in, and the deletion of one's own."""

from __future__ import annotations

import time

import streamlit as st

from core.analysis.wording import counted, listed
from core.glossary import explain
from core.store.runfile import RunFileError
from core.store.sweepentry import SweepEntry, SweepError
from core.sweep import backend_titles
from core.ui import chrome, session, shapes, shapes_link, words
from core.ui.shapes_data import fixed_sizes

_SAID = "shapes:said"
_TAKEN_IN = "shapes:taken in"
_ASKED = "shapes:delete asked"
_UPLOAD_MB_MAX = 400
#: A page drawn anew right after takes its toasts along: for so long they are said again.
_SAID_S = 4.0


def say_what_happened() -> None:
    """What the last action came to; said for a moment, where it moves nothing."""
    said = [one for one in st.session_state.get(_SAID, ()) if time.monotonic() - one[2] < _SAID_S]
    st.session_state[_SAID] = said
    for sentence, went_well, _ in said:
        st.toast(words.plain(sentence), icon=":material/check:" if went_well else ":material/warning:")


def actions(entry: SweepEntry) -> None:
    """Download and delete, in a row."""
    with st.container(horizontal=True, vertical_alignment="center"):
        st.download_button(
            "Sweep (zip)", data=lambda: session.sweeps().export(entry), file_name=f"{entry.head.id}.sweep.zip",
            mime="application/zip", icon=":material/download:", on_click="ignore", key="shapes:export", type="tertiary",
            help="The sweep in one file: what was swept, and the run file of every point, each with its trace. It can be "
            "uploaded below, on any FusionScope.",
        )  # fmt: skip
        st.button(
            "Delete", key="shapes:delete", icon=":material/delete:", type="tertiary", disabled=entry.origin == "recorded",
            help="Asks first. Shipped recordings stay.", on_click=_ask, args=(entry.head.id,),
        )  # fmt: skip
    if st.session_state.pop(_ASKED, None) == entry.head.id:  # the one beside whose name it was pressed, and no other
        _confirm(entry)


def _ask(sweep_id: str) -> None:
    st.session_state[_ASKED] = sweep_id


def _which(entry: SweepEntry) -> str:
    """What tells the sweep from others of its kind."""
    sweep = entry.head.sweep
    fixed = [f"{name} {value:,}" for name, value in fixed_sizes(sweep).items()]
    begun = entry.head.created[:16].replace("T", " ")
    return f"{', '.join((*fixed, sweep.base.dtype))}, on {listed(list(backend_titles(sweep)))}, begun {begun} UTC"


@st.dialog("Delete this sweep")
def _confirm(entry: SweepEntry) -> None:
    with chrome.guarded():
        st.markdown(
            f"**{words.plain(entry.head.sweep.title)}** with {counted(len(entry.done), 'run')} will be deleted from this "
            f"machine: {words.plain(_which(entry))}. There is no way back, but for a copy downloaded before."
        )
        with st.container(horizontal=True):
            if st.button("Delete the sweep", type="primary", key="shapes:really"):
                _delete(entry)
                st.rerun()
            if st.button("Cancel", key="shapes:not-really"):
                st.rerun()


def _delete(entry: SweepEntry) -> None:
    with st.spinner("Deleting it ..."):
        was_running = session.stop_sweep(entry.head.id)
    try:
        session.sweeps().delete(entry.head.id)
    except SweepError as error:
        stopping = (
            "The sweep is being cancelled, which takes a moment longer; it is not deleted yet: press Delete again."
        )
        _say(stopping if was_running else str(error), went_well=False)
    except OSError as error:
        _say(f"The disk refused it ({error.strerror}); try again.", went_well=False)
    else:
        _say("The sweep was cancelled and deleted." if was_running else "The sweep was deleted.")


def upload() -> None:
    """Takes a sweep's zip in, once, and says what became of it."""
    with st.expander("Upload a sweep", icon=":material/upload:"):
        files = st.file_uploader(
            "Sweep files", type=["zip"], accept_multiple_files=True, key="shapes:upload", max_upload_size=_UPLOAD_MB_MAX,
            help=f"The .sweep.zip files that this page and the command line give out. {explain('uploaded')}",
        )  # fmt: skip
        done: dict[str, tuple[str, SweepEntry | None]] = st.session_state.setdefault(_TAKEN_IN, {})
        for file in files:
            if file.file_id not in done:
                done[file.file_id] = _take_in(file.getvalue())
            sentence, entry = done[file.file_id]
            (st.success if entry else st.warning)(f"{words.code(file.name)}: {words.plain(sentence)}")
            if entry is not None:
                st.page_link(
                    shapes.PAGE, label="Show it", icon=":material/open_in_new:",
                    query_params=shapes_link.to_sweep(entry.head.sweep, entry.head.id),
                )  # fmt: skip


def _take_in(data: bytes) -> tuple[str, SweepEntry | None]:
    try:
        entry = session.sweeps().upload(data)
    except RunFileError as error:
        return f"Not taken in. {error}", None
    except OSError as error:
        return f"Not taken in: the disk refused it ({error.strerror}); make room, then upload it again.", None
    return f"Here: {entry.head.sweep.title}.", entry


def problems() -> None:
    """The files that could not be read as sweeps or their points, each with the reason."""
    found = session.sweeps().problems()
    if found:
        with st.expander(f"Files that could not be read ({len(found)})", icon=":material/warning:"):
            st.caption("They are left where they are. Record them again, update FusionScope, or delete them by hand.")
            st.markdown(
                "\n".join(
                    f"- {words.code(path.parent.name + '/' + path.name)}: {words.plain(why)}"
                    for path, why in found.items()
                )
            )


def _say(sentence: str, *, went_well: bool = True) -> None:
    st.session_state.setdefault(_SAID, []).append((sentence, went_well, time.monotonic()))
