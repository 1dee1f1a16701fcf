"""The doctor on a page: what needs attention first, the closer look by the worker, all checks, and a text for a bug report."""

from __future__ import annotations

from html import escape
from typing import Any

import msgspec
import streamlit as st

from core import health, health_checks
from core.glossary import explain
from core.health import Check, Examination
from core.ui import jobbox, session, words

_POLL_S = 0.4
#: How a state is shown: an icon, a colour, and what it means.
_SHOWN = {
    "problem": (":material/error:", "red", "Something that is installed here does not work; what stands on it fails."),
    "warning": (":material/warning:", "orange", "It works in part, or only some pages need it."),
    "unknown": (":material/help:", "gray", "It could not be found out; the reason stands beside it."),
    "ok": (":material/check_circle:", "green", "It was tried, and it worked."),
    "not needed": (":material/remove:", "gray", "Nothing on this machine would use it."),
}  # fmt: skip
_WORDS = {
    "Driver and CUDA": explain("driver"),
    "GPU clocks": f"{explain('nvml')} {explain('throttling')}",
    "Profiler": explain("cupti"),
    "Triton": explain("triton"),
    "Package triton": explain("triton"),
    "Liger": explain("liger"),
    "Package liger-kernel": explain("liger"),
    "torch.compile": explain("inductor"),
    "CUDA graphs": explain("cuda-graph replay"),
    "Package nvidia-ml-py": explain("nvml"),
}

_COLUMNS = (
    ("Check", "What was tried."),
    ("State", "ok, warning, problem, unknown or not needed; each says on hover what it means."),
    ("Found", "What was seen, with versions and figures."),
    ("Why it matters", "What on FusionScope's pages stands on it."),
    ("Took", "How long the check took, once, by the host's clock."),
)
# Streamlit's own table cuts a sentence off where its cell ends; this one wraps it.
_STYLE = """
<style>
  .checks { width: 100%; border-collapse: collapse; font-size: 0.875rem; }
  .checks th, .checks td { text-align: left; vertical-align: top; padding: .3rem .6rem;
                           border-bottom: 1px solid rgba(128, 128, 128, .3); }
  .checks th { opacity: .75; font-weight: 600; cursor: help; }
  .checks td:nth-child(-n+2), .checks td:last-child { white-space: nowrap; }
  .checks th:last-child, .checks td:last-child { text-align: right; }
</style>
"""


def show() -> None:
    """The page, under its title."""
    found = [_at_once()]
    job, closer = _job(), _closer()
    found += [closer] if closer is not None else []
    checks = health.in_order(check for one in found for check in one.checks)
    _counts(checks)
    taken = (f"{len(one.checks)} checks by {one.where}, taken {_when(one.taken)}" for one in found)
    st.caption(words.plain("; ".join(taken)))
    _look_closer(job)
    _attention(checks)
    _everything(checks)
    _bug_report(found)


@st.cache_resource(show_spinner="Trying compilers, disk and packages ...")
def _at_once() -> Examination:
    return health_checks.examine(session.store(), "the process of the pages")


def _jobs() -> list[Any]:
    """The closer looks that anybody asked for, the newest first."""
    engine = session.engine()
    jobs = engine.jobs() if engine is not None else ()
    return [job for job in reversed(jobs) if job.key == session.EXAMINATION]


def _job() -> Any:
    return next(iter(_jobs()), None)


def _closer() -> Examination | None:
    """What the last closer look found that came to its end; one that is under way or failed takes nothing away."""
    result = next((job.result for job in _jobs() if job.state == "done"), None)
    return None if result is None else msgspec.json.decode(result, type=Examination)


def _when(taken: str) -> str:
    return f"{taken[:19].replace('T', ' ')} UTC"


def _counts(checks: tuple[Check, ...]) -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        for state, number in health.count(checks).items():
            icon, color, meaning = _SHOWN[state]
            if number:
                st.badge(health.so_many(state, number), icon=icon, color=color, help=meaning)  # type: ignore[arg-type]


def _look_closer(job: Any) -> None:
    problem = session.machine_problem()
    if session.engine() is None:
        st.info(words.plain(f"No closer look here. {problem or 'Live runs are not possible.'}"), icon=":material/info:")
        _again_button()
        return
    if job is not None and job.state in jobbox.LIVE_STATES:
        _progress()
        return
    if job is not None and job.state == "cancelled":
        st.info("The closer look was cancelled, here or by another visitor who asked for it too.")
    elif job is not None and job.failure is not None:
        st.error(words.plain(f"The closer look itself failed. {job.failure.sentence}"), icon=":material/error:")
        if job.failure.log.strip():
            with st.expander("Log"):
                st.code(health.private(job.failure.log)[-6000:], language="text")
    with st.container(horizontal=True, vertical_alignment="center"):
        st.button(
            "Look closer: profile, compile and launch on this device",
            type="primary" if job is None else "secondary",
            icon=":material/stethoscope:",
            key="doctor:closer",
            on_click=_start,
            help="Queued for the worker like a run, so that it disturbs none. A few seconds on a GPU; on a CPU the first "
            "compile takes up to half a minute.",
        )
        _again_button()


def _start() -> None:
    session.submit_examination()


def _again_button() -> None:
    st.button(
        "Look again",
        icon=":material/refresh:",
        key="doctor:again",
        on_click=_at_once.clear,
        help="Carries the checks out again that need no torch: packages, compilers, disk, memory.",
    )


@st.fragment(run_every=_POLL_S)
def _progress() -> None:
    job = _job()
    if job is None or job.state not in jobbox.LIVE_STATES:
        st.rerun(scope="app")
    with st.container(border=True):
        jobbox.bar(job, starting="starting the worker, which imports torch")
        st.button(
            "Cancel", key="doctor:cancel", icon=":material/close:", on_click=session.engine().cancel, args=(job.id,)
        )


def _attention(checks: tuple[Check, ...]) -> None:
    st.subheader("What needs attention", anchor="attention", help="Checks that found a problem, a warning or no answer, the "
                 "worst first, each with what to do.")  # fmt: skip
    wanting = [check for check in checks if check.state in ("problem", "warning", "unknown")]
    if not wanting:
        st.success("Nothing: all that was tried is in order.", icon=":material/check_circle:")
    for check in wanting:
        icon, color, meaning = _SHOWN[check.state]
        with st.container(border=True, gap="xsmall"):
            with st.container(horizontal=True, vertical_alignment="center"):
                st.badge(check.state, icon=icon, color=color, help=meaning)  # type: ignore[arg-type]
                st.markdown(f"**{words.plain(check.name)}**", help=_WORDS.get(check.name, check.matters))
            st.markdown(words.plain(check.found))
            st.caption(words.plain(check.matters))
            if check.remedy:
                st.markdown(f"**What to do:** {words.plain(check.remedy)}")
            if check.command:
                st.code(check.command, language="text")
            if check.log.strip():
                with st.expander("Log"):
                    st.code(check.log[-6000:], language="text")


def _everything(checks: tuple[Check, ...]) -> None:
    st.subheader("All checks", anchor="checks", help="Everything that was tried, problems first.")
    heads = "".join(f'<th title="{escape(meaning)}">{title}</th>' for title, meaning in _COLUMNS)
    rows = "".join(_row(check) for check in checks)
    st.html(f'{_STYLE}<table class="checks"><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>')


def _row(check: Check) -> str:
    cells = (
        f'<td title="{escape(_WORDS.get(check.name, check.matters))}">{escape(check.name)}</td>',
        f'<td title="{escape(_SHOWN[check.state][2])}">{escape(check.state)}</td>',
        f"<td>{escape(check.found)}</td>",
        f"<td>{escape(check.matters)}</td>",
        f"<td>{words.time(None if check.seconds is None else check.seconds * 1e6)}</td>",
    )
    return f"<tr>{''.join(cells)}</tr>"


def _bug_report(found: list[Examination]) -> None:
    st.subheader("For a bug report", anchor="report", help="All of the above as text, to copy: versions, results and the ends "
                 "of logs, without the names of host and user and without the path of their home.")  # fmt: skip
    st.code(health.report(found), language="text", wrap_lines=True, height=320)
