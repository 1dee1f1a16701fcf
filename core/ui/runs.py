"""The Runs page's parts: filters that live in the link, the list, what is done with the ticked runs, and uploads."""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import Mapping
from typing import Any

import streamlit as st

from core.glossary import explain
from core.store.entry import Entry
from core.store.index import Snapshot
from core.store.runfile import RunFileError
from core.store.store import StoreError
from core.ui import chrome, link, runtable, session, words
from core.ui.runtable import COLUMNS, FACETS, Filters, Table

HELP = "Every run that this FusionScope holds: its own, the shipped recordings, and run files put here by hand."
_TEXT = "q"
_TEXT_MAX = 200
_WRITTEN = "runs:written"
_NOTICE = "runs:notice"
_SAID = "runs:said"
_TAKEN_IN = "runs:taken in"
_DOWNLOAD_RUNS_MAX = 200
_DOWNLOAD_BYTES_MAX = 200_000_000
_UPLOAD_MB_MAX = 50
_ROWS_SHOWN = 14


def show(snapshot: Snapshot) -> None:
    """The filters, the list that they leave, and what can be done with the ticked rows."""
    found = runtable.table(snapshot)
    filters = _filters(found)
    notice = st.session_state.get(_NOTICE)
    if notice:
        st.warning(words.plain(notice), icon=":material/info:")
    rows = runtable.matching(found, filters)
    entries = tuple(found.entries[row] for row in rows)
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        st.markdown(f"**{len(rows):,} of {len(found.entries):,} runs**, newest first", width="content")
        st.download_button(
            "This list as CSV", data=lambda: runtable.as_csv(entries), file_name="fusionscope-runs.csv", mime="text/csv",
            icon=":material/table:", on_click="ignore", disabled=not rows, key="runs:csv", type="tertiary",
            help="A row for each run listed, with its id, device and versions; an empty cell is unknown.",
        )  # fmt: skip
    if not rows:
        st.info("No run matches these filters.", icon=":material/filter_alt_off:")
        st.button("Clear the filters", on_click=_clear, key="runs:clear here", icon=":material/filter_alt_off:")
        return
    actions = st.container()
    ticked = _list(found, rows)
    with actions:
        _actions(ticked)


def show_empty() -> None:
    """What a store without any runs says, and the way on."""
    st.info(
        "There are no runs here yet. Make one on the Explore page, upload run files below, or record the shipped set with: "
        "python -m core record --shipped",
        icon=":material/inbox:",
    )
    st.page_link("pages/1_Explore.py", label="Go to Explore", icon=":material/search:")


def show_problems(snapshot: Snapshot) -> None:
    """The files that could not be read as runs, by name, each with the reason."""
    if not snapshot.problems:
        return
    with st.expander(f"Files that could not be read as runs ({len(snapshot.problems)})", icon=":material/warning:"):
        st.caption(
            "They are left where they are. Fetch or record them again, update FusionScope, or delete them by hand."
        )
        st.markdown(
            "\n".join(f"- {words.code(path.parent.name + '/' + path.name)}: {words.plain(why)}"
                      for path, why in snapshot.problems.items())
        )  # fmt: skip


def say_what_happened() -> None:
    """What the last action came to; said once, and where it moves nothing: a click right after it must hit its row."""
    for sentence, went_well in st.session_state.pop(_SAID, ()):
        st.toast(words.plain(sentence), icon=":material/check:" if went_well else ":material/warning:")


def upload() -> None:
    """Takes run files in, once each, and says what became of every one."""
    with st.expander("Upload run files", icon=":material/upload:"):
        files = st.file_uploader(
            "Run files", type=["zip"], accept_multiple_files=True, key="runs:upload", max_upload_size=_UPLOAD_MB_MAX,
            help="The .run.zip files that this page, the Explore page and the command line give out. "
            + words.origin_help("uploaded"),
        )  # fmt: skip
        done: dict[str, tuple[str, bool]] = st.session_state.setdefault(_TAKEN_IN, {})
        for file in files:
            if file.file_id not in done:
                done[file.file_id] = _take_in(file.getvalue())
            sentence, went_well = done[file.file_id]
            (st.success if went_well else st.warning)(f"{words.code(file.name)}: {words.plain(sentence)}")


def _take_in(data: bytes) -> tuple[str, bool]:
    store = session.store()
    before = store.snapshot().by_id
    try:
        entry = store.upload(data)
    except RunFileError as error:
        return f"Not taken in. {error}", False
    except OSError as error:
        return f"Not taken in: the disk refused it ({error.strerror}); make room, then upload it again.", False
    told = f"{_title(entry)}. {words.place(entry.head.device, entry.origin)}"
    return (f"Already here, and left as it is: {told}.", True) if entry.head.id in before else (f"Added: {told}.", True)


def _title(entry: Entry) -> str:
    return f"{entry.head.workload.title}, {entry.head.workload.steps} steps"


def _filters(found: Table) -> Filters:
    """The filter widgets; they start from the link, and the link follows them."""
    given = {name: st.query_params.get_all(name) for name in st.query_params}
    are_set = _key(_TEXT) in st.session_state
    if not are_set or given != st.session_state.get(_WRITTEN):
        _load(found, given if given or are_set else st.session_state.get(_WRITTEN, {}))
    with st.sidebar:
        text = st.text_input(
            "Search", key=_key(_TEXT), max_chars=_TEXT_MAX, placeholder="mlp h200 8,192", icon=":material/search:",
            help="Words that must all occur in what is listed of a run, its name included; press Enter.",
        )  # fmt: skip
        chosen: dict[str, tuple[str, ...]] = {}
        for facet in FACETS:
            names = found.options[facet.name]
            # A deletion may take the last run of a chosen value away.
            st.session_state[_key(facet.name)] = [one for one in st.session_state[_key(facet.name)] if one in names]
            chosen[facet.name] = tuple(
                st.multiselect(
                    facet.title, list(names), format_func=names.__getitem__, key=_key(facet.name),
                    placeholder="all", help=facet.help,
                )
            )  # fmt: skip
        if text or any(chosen.values()):
            st.button("Clear the filters", on_click=_clear, key="runs:clear", icon=":material/filter_alt_off:")
    wanted = {_TEXT: [text]} if text else {}
    wanted |= {name: list(values) for name, values in chosen.items() if values}
    if {name: st.query_params.get_all(name) for name in st.query_params} != wanted:
        st.query_params.from_dict(wanted)
    st.session_state[_WRITTEN] = wanted
    return Filters(text, chosen)


def _load(found: Table, given: Mapping[str, list[str]]) -> None:
    """Sets the filters from a link; what is wrong with it is left out, and said in one sentence."""
    texts = [text[:_TEXT_MAX] for text in given.get(_TEXT, ())]
    st.session_state[_key(_TEXT)] = texts[0] if texts else ""
    wrong = [f"{name[:40]!r}" for name in given if name not in {_TEXT, *(facet.name for facet in FACETS)}]
    for facet in FACETS:
        values = list(dict.fromkeys(given.get(facet.name, ())))
        known = found.options[facet.name]
        st.session_state[_key(facet.name)] = [value for value in values if value in known]
        wrong += [f"{facet.title.lower()} {value[:40]!r}" for value in values if value not in known]
    named = ", ".join(wrong[:3]) + (f" and {len(wrong) - 3} more" if len(wrong) > 3 else "")
    st.session_state[_NOTICE] = f"The link asks for {named}, which no run here has; it is left out." if wrong else None


def _clear() -> None:
    for name in (_TEXT, *(facet.name for facet in FACETS)):
        st.session_state[_key(name)] = "" if name == _TEXT else []
    st.session_state[_NOTICE] = None


def _key(name: str) -> str:
    return f"runs:filter:{name}"


def _list(found: Table, rows: list[int]) -> tuple[Entry, ...]:
    """The list; the entries whose rows are ticked."""
    # The ticks are positions: another list is another widget, so that no tick ever means another run.
    ids = "\n".join(f"{found.entries[row].origin} {found.entries[row].head.id}" for row in rows)
    event: Any = st.dataframe(
        found.frame.iloc[rows],
        hide_index=True,
        height=35 * (min(len(rows), _ROWS_SHOWN) + 1) + 3,
        placeholder=words.UNKNOWN,
        column_config=_column_config(),
        on_select="rerun",
        selection_mode="multi-row",
        key=f"runs:list:{hashlib.sha256(ids.encode()).hexdigest()[:16]}",
    )
    return tuple(found.entries[rows[at]] for at in event.selection.rows if at < len(rows))


def _column_config() -> dict[str, Any]:
    return {
        column.title: st.column_config.NumberColumn(format=column.number, help=column.help, width=column.width)
        if column.number
        else st.column_config.TextColumn(help=column.help, width=column.width)
        for column in COLUMNS
    }


def _actions(ticked: tuple[Entry, ...]) -> None:
    """One row of buttons, there before anything is ticked, so that nothing jumps."""
    one = ticked[0] if len(ticked) == 1 else None
    with st.container(horizontal=True, vertical_alignment="center"):
        st.page_link(
            "pages/1_Explore.py",
            label="Open",
            icon=":material/open_in_new:",
            query_params=link.to_run(one.head.workload, one.head.id) if one else None,
            disabled=one is None,
            help="Shows the one ticked run on the Explore page.",
            width="content",
        )
        _download(ticked)
        _keeping(ticked)
        if st.button("Delete", icon=":material/delete:", key="runs:delete",
                     disabled=not any(entry.stays_why is None for entry in ticked),
                     help="Asks first. Shipped recordings and kept runs stay."):  # fmt: skip
            _confirm(ticked)
    st.caption(_told(ticked))


def _told(ticked: tuple[Entry, ...]) -> str:
    """What is ticked, in a line."""
    if not ticked:
        return "Tick rows to open, download, keep or delete runs."
    if len(ticked) > 1:
        return f"{len(ticked):,} runs ticked"
    head = ticked[0].head
    step = f"step {words.time(head.step_us.median)} (median; {words.range_and_n(head.step_us)}; {head.step_how})" \
        if head.step_us else "step unknown"  # fmt: skip
    return words.plain(f"{words.place(head.device, ticked[0].origin)}: {head.failure or step}")


def _download(ticked: tuple[Entry, ...]) -> None:
    size = sum(int(entry.stamp.split("-")[0]) for entry in ticked)
    why = "One run as its file, several as a zip of run files."
    gone = [entry for entry in ticked if not entry.path.exists()]
    if gone:
        why = f"The file of {gone[0].head.id[:80]} is gone; reload the page."
    too_many = len(ticked) > _DOWNLOAD_RUNS_MAX or size > _DOWNLOAD_BYTES_MAX
    if too_many:
        why = (
            f"{len(ticked):,} runs of {words.memory(size)} are too much for one download: tick at most "
            f"{_DOWNLOAD_RUNS_MAX} runs, of {words.memory(_DOWNLOAD_BYTES_MAX)}."
        )
    st.download_button(
        "Download",
        data=lambda: run_files(ticked),
        file_name=ticked[0].path.name if len(ticked) == 1 else f"{len(ticked)}-runs.zip",
        mime="application/zip",
        icon=":material/download:",
        on_click="ignore",
        disabled=not ticked or too_many or bool(gone),
        key="runs:download",
        help=why,
    )


def run_files(entries: tuple[Entry, ...]) -> bytes:
    """One run's file as it is; several in a zip, by origin. Raises OSError where a file is gone."""
    if len(entries) == 1:
        return entries[0].path.read_bytes()
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        for entry in entries:
            archive.write(entry.path, f"{entry.origin}/{entry.path.name}")
    return out.getvalue()


def _keeping(ticked: tuple[Entry, ...]) -> None:
    """Keep, or Release where all that can be kept is kept already."""
    own = [entry for entry in ticked if not entry.recorded]
    release = bool(own) and all(entry.kept for entry in own)
    if st.button(
        "Release" if release else "Keep",
        icon=":material/lock_open:" if release else ":material/lock:",
        disabled=not own,
        key="runs:keep",
        help=explain("kept") + " Shipped recordings stay anyway.",
    ):
        try:
            for entry in own:
                session.store().keep(entry.head.id, not release)
        except StoreError as error:
            _say(str(error), went_well=False)
        except OSError as error:
            _say(f"The disk refused it ({error.strerror}); make room, then try again.", went_well=False)
        else:
            _say(f"{_count(len(own))} {'released' if release else 'kept'}.")
        st.rerun()


@st.dialog("Delete runs")
def _confirm(ticked: tuple[Entry, ...]) -> None:
    with chrome.guarded():
        going = [entry for entry in ticked if entry.stays_why is None]
        staying = [entry.stays_why for entry in ticked if entry.stays_why]
        st.markdown(f"**{_count(len(going))}** will be deleted from this machine, with what was read from it. "
                    "There is no way back, but for a copy downloaded before.")  # fmt: skip
        for why in dict.fromkeys(staying):
            st.markdown(f"{_count(staying.count(why))} will be left alone. {why}")
        with st.container(horizontal=True):
            if st.button(f"Delete {_count(len(going))}", type="primary", key="runs:really"):
                _delete([entry.head.id for entry in going])
                st.rerun()
            if st.button("Cancel", key="runs:cancel"):
                st.rerun()


def _delete(run_ids: list[str]) -> None:
    done = session.store().delete(run_ids)
    _say(f"{_count(len(done.deleted))} deleted.", went_well=bool(done.deleted))
    for why in dict.fromkeys(done.left.values()):
        _say(f"{_count(list(done.left.values()).count(why))} left alone. {why}", went_well=False)


def _count(number: int) -> str:
    return f"{number:,} run{'' if number == 1 else 's'}"


def _say(sentence: str, *, went_well: bool = True) -> None:
    st.session_state.setdefault(_SAID, []).append((sentence, went_well))
