"""How far apart cold compiles of a sweep's sizes came out, from the runs at hand that hold several of them."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from core.analysis.compiles import KernelDraws, sentence
from core.glossary import explain
from core.store.entry import Entry
from core.store.runfile import RunFileError
from core.sweep import workload_at
from core.ui import link, session, views, words
from core.ui.shapes_data import EXPLORE, Shown, point_words
from core.workload import STEPS_DEFAULT, backend_of, with_changes

#: Fewer say nothing of how far apart they come out.
_COMPILES_MIN = 3
_RUNS_MAX = 3


@dataclass(frozen=True)
class Drawn:
    """A run with several cold compiles of one point's sizes, and its generated kernels over them."""

    entry: Entry
    at: str
    kernels: tuple[KernelDraws, ...]


def drawn(found: Shown) -> tuple[Drawn, ...]:
    """The runs of the sweep's sizes and backends, on the same device, that hold enough cold compiles; the widest first."""
    devices = {one.device.name for one in found.measured}
    told: dict[str, Drawn] = {}
    for name in found.sweep.backends:
        for index, values in enumerate(found.sweep.points):
            workload = with_changes(workload_at(found.sweep, name, index), steps=STEPS_DEFAULT)
            if not backend_of(workload).compiles:
                break
            for entry in session.store().of(workload):
                if entry.head.n_compiles < _COMPILES_MIN or entry.head.device.name not in devices:
                    continue
                try:
                    kernels = tuple(one for one in views.run_draws(entry.manifest) if len(one.draws) >= _COMPILES_MIN)
                except RunFileError:  # the file has gone or is damaged; the Runs page says so
                    continue
                if kernels:
                    told.setdefault(entry.head.id, Drawn(entry, point_words(found.sweep, values), kernels))
    widest = sorted(told.values(), key=lambda one: -max(k.slowest_us / k.fastest_us for k in one.kernels))
    return tuple(widest[:_RUNS_MAX])


def told(found: Shown) -> str | None:
    """The widest of them in a sentence, None where the launch configurations of none differ."""
    for one in drawn(found):
        kernel = max(one.kernels, key=lambda k: k.slowest_us / k.fastest_us)
        if kernel.configurations > 1:
            title, plain = backend_of(one.entry.head.workload).title, sentence(kernel)
            plain = plain[0].lower() + plain[1:]
            return f"{title} does not always make the same kernel: in a run of its own at {one.at} {plain}"
    return None


def show(found: Shown) -> None:
    """Each of the runs: its compiles side by side, and the way to it."""
    st.subheader(
        "The same code, compiled again and again", anchor="lottery",
        help=f"{explain('compile lottery')} {explain('tuner')} {explain('launch configuration')}",
    )  # fmt: skip
    st.caption(
        "From runs of their own at these sizes, each with several cold compiles; a sweep compiles each size once."
    )
    for one in drawn(found):
        workload = one.entry.head.workload
        st.markdown(f"**{words.plain(backend_of(workload).title)}, {words.plain(one.at)}**")
        views.draws(one.entry.manifest, key=one.entry.head.id)
        st.page_link(
            EXPLORE, label="Open this run", icon=":material/view_timeline:",
            query_params=link.to_run(workload, one.entry.head.id),
            help="On Explore: its timeline, its kernels, and what each compile took.",
        )  # fmt: skip
