"""What the step waits for: the verdict, and beside it the step with and without the profiler, and what launching takes."""

from __future__ import annotations

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.analysis.bound import ProfiledStep, bound_of, inflation_sentence, profiled_step, sentence
from core.analysis.headline import Headline
from core.analysis.launches import Launches, launches
from core.analysis.spread import Spread
from core.glossary import explain
from core.store.manifest import Manifest
from core.trace import Tables
from core.ui import words


def show(manifest: Manifest, tables: Tables, found: Headline) -> None:
    """Draws the block of a run. A CPU run gets no verdict, for there is no GPU to wait for, and no launches."""
    on_gpu = manifest.device.kind == "gpu"
    step = words.spread_of(manifest.step_us)
    step_us = step.median if step else None
    profiled = profiled_step(tables, step_us)
    told = f"{explain('overhead-bound')} {explain('gpu-bound')}" if on_gpu else explain("profiled step")
    st.subheader("What the step waits for", help=told, anchor="waits")
    if on_gpu:
        replay = words.spread_of(manifest.graph_replay_us)
        st.markdown(words.plain(sentence(bound_of(tables, found, step, replay))))
    places = st.columns(4)
    _profiled(places[0], profiled)
    how = manifest.step_us.how if manifest.step_us else "it was not measured"
    _metric(places[1], "Unprofiled step", step, f"{explain('step time')} Median; {words.plain(how)}.", "not measured")
    if not on_gpu:
        st.caption(words.plain(f"{inflation_sentence(profiled)} There is no GPU to wait for: this run was on a CPU."))
        return
    launched = launches(tables)
    _launches(places[2], places[3], launched)
    st.caption(words.plain(" ".join([inflation_sentence(profiled), *_queued(launched), _clocks(manifest)])))


def _profiled(place: DeltaGenerator, profiled: ProfiledStep) -> None:
    how = f"Median over the profiled steps, from start to start of their {profiled.side} work."
    why = "fewer than two steps in a row"
    _metric(place, "Profiled step", profiled.step_us, f"{explain('profiled step')} {how}", why)


def _launches(left: DeltaGenerator, right: DeltaGenerator, found: Launches) -> None:
    if found.call_us is not None:
        no_call = ""
    elif found.graphs is not None:
        no_call = "all kernels came by CUDA graph"
    else:
        no_call = "no launch in the trace"
    _metric(
        left,
        "Launch call",
        found.call_us,
        f"{explain('launch call')} Median over the kernels' launches; profiled.",
        no_call,
    )
    no_latency = no_call or "no kernel found the GPU idle"
    _metric(
        right,
        "Launch latency",
        found.idle_us,
        f"{explain('launch latency')} Median over such kernels; profiled.",
        no_latency,
    )


def _metric(place: DeltaGenerator, label: str, found: Spread | None, help_text: str, why: str) -> None:
    place.metric(
        label,
        words.time(found.median if found else None),
        delta=words.plain(words.range_and_n(found) if found else why),
        delta_color="off",
        delta_arrow="off",
        help=help_text,
    )


def _queued(found: Launches) -> list[str]:
    told = []
    alone = found.kernels - (found.graphs.kernels if found.graphs else 0)
    if found.queued_us is not None:
        told.append(
            f"{found.queued_us.n} of {alone} kernels were launched while earlier GPU work was still to end, and "
            f"started {words.time(found.queued_us.median)} after their call ({words.range_and_n(found.queued_us)})."
        )
    if found.graphs is not None:
        graphs = found.graphs
        latency = graphs.idle_us or graphs.queued_us
        behind = "" if graphs.idle_us else ", behind other work"
        told.append(
            f"{graphs.launches} CUDA-graph launches brought {graphs.kernels} kernels: a call takes "
            f"{words.time(graphs.call_us.median if graphs.call_us else None)} ({words.range_and_n(graphs.call_us)}), and its "
            f"first kernel starts {words.time(latency.median if latency else None)} after it began "
            f"({words.range_and_n(latency)}{behind})."
        )
    if found.unlinked:
        told.append(f"{found.unlinked} kernels have no launch in the trace.")
    if found.early:
        told.append(f"{found.early} kernels start before their launch call, by two clocks, and are left out.")
    return told


def _clocks(manifest: Manifest) -> str:
    samples = manifest.window_clocks
    return (
        f"SM clock {words.clock_range(samples)}, {words.throttle(samples)}, read right before and after the profile."
        if samples
        else "The SM clock during the profile is unknown: it was not read."
    )
