"""FusionScope's home page: what this is, what is on this machine, and the ways in."""

from collections import Counter

import streamlit as st

from core.analysis.wording import counted
from core.backends import BACKENDS
from core.layers import LAYERS
from core.shipped import FIRST_BACKENDS
from core.ui import chrome, link, session, shapes, shapes_link, words
from core.workload import Workload, applies, from_preset, layer_of, presets, without_backend


def main() -> None:
    """The page, top to bottom."""
    chrome.set_up("Home")
    st.title("FusionScope", anchor=False)
    st.markdown(
        "**What did the GPU really run?** Pick a layer, sizes and a backend. FusionScope runs it under PyTorch's profiler, "
        "keeps the result, and shows which kernels ran, what was fused, and what it cost."
    )
    _ways_in()
    left, right = st.columns(2)
    with left:
        _machine()
    with right:
        _runs()


def _ways_in() -> None:
    st.subheader("Start here", anchor=False, help=words.explain("preset"))
    # Two scripts of the same sizes open the same stack.
    sizes = {
        without_backend(from_preset(p.name)): (layer, p) for layer, p in reversed(presets()) if p.group == "article"
    }
    article = list(reversed(sizes.values()))
    for column, (layer, preset) in zip(st.columns(len(article)), article, strict=True):
        with column.container(border=True, height="stretch"):
            base = from_preset(preset.name)
            st.markdown(f"**{preset.title}**")
            st.caption(layer.description)
            st.caption(words.fields(base))
            _stack_link(base, "Side by side")
    left, right = st.columns(2)
    for place, title, group in ((left, "Other layers", "layer"), (right, "MLPs of well-known models", "model")):
        with place.container(border=True, height="stretch"):
            st.markdown(f"**{title}**")
            with st.container(horizontal=True, gap="small"):
                for _, preset in presets():
                    workload = from_preset(preset.name)
                    if preset.group == group and (session.has_gpu() or session.store().of(workload)):
                        _stack_link(workload, preset.title)
    with st.container(border=True):
        _shapes()
    st.page_link("pages/1_Explore.py", label="Or explore with sizes of your own", icon=":material/tune:")


def _shapes() -> None:
    st.markdown("**What happens as sizes change**", help=words.explain("sweep"))
    st.caption(
        "What recompiles and why, when a compile pays back, who is ahead at which size, and what your traffic costs."
    )
    with st.container(horizontal=True, gap="small"):
        for entry in shapes.ways_in():
            st.page_link(
                shapes.PAGE, label=words.plain(entry.head.sweep.title), icon=":material/stacked_line_chart:",
                query_params=shapes_link.to_sweep(entry.head.sweep, entry.head.id),
                help=f"{words.explain('shared')} {words.explain('isolated')}",
            )  # fmt: skip
        st.page_link(shapes.PAGE, label="Sweep sizes of your own", icon=":material/tune:")


def _stack_link(workload: Workload, label: str) -> None:
    backends = [b.name for b in BACKENDS if b.name in FIRST_BACKENDS and applies(b, layer_of(workload))]
    st.page_link(
        "pages/1_Explore.py",
        label=label,
        query_params=link.to_stack(workload, backends),
        icon=":material/stacked_bar_chart:",
        help=f"On {len(backends)} backends: {', '.join(b.title for b in BACKENDS if b.name in backends)}.",
    )


def _machine() -> None:
    st.subheader("On this machine", anchor=False, help=words.explain("live"))
    problem = session.machine_problem()
    if problem:
        st.info(problem, icon=":material/info:")
        return
    machine = session.machine()
    if machine is None:
        session.wait_for_machine("The worker is starting: it imports torch and looks at this machine ...")
        return
    device = machine.device
    facts = [
        f"Live runs happen on **{words.plain(words.device(device))}**"
        + (f", {words.memory(device.memory_bytes)}" if device.memory_bytes else ""),
        f"Driver {device.driver or words.UNKNOWN}, CUDA {device.cuda or words.UNKNOWN}"
        if device.kind == "gpu"
        else "No GPU that torch can use: live runs speak of operators on the CPU, recordings of kernels on a GPU",
        ", ".join(f"{name.replace('_', '-')} {version}" for name, version in machine.versions.items() if version),
        f"Free memory when the worker started: {words.memory(machine.rates.free_memory_bytes)}",
    ]
    facts += list(machine.gaps.values())
    st.markdown("\n".join(f"- {fact}" for fact in facts))


def _runs() -> None:
    st.subheader("Runs at hand", anchor=False, help=words.explain("recorded"))
    found = session.store().snapshot()
    counts = Counter(entry.origin for entry in found.entries)
    sweeps = Counter(entry.origin for entry in session.sweeps().entries())
    devices = sorted({entry.head.device.name for entry in found.entries if entry.recorded})
    st.markdown(
        f"- {counts['recorded']} recordings"
        + (f", made on {words.plain(', '.join(devices))}" if devices else "")
        + f", and {counted(sweeps['recorded'], 'recorded sweep')}"
        f"\n- {counted(counts['live'], 'run')} and {counted(sweeps['live'], 'sweep')} of your own"
        f"\n- {counted(counts['uploaded'], 'run')} and {counted(sweeps['uploaded'], 'sweep')} uploaded"
        f"\n- {len(LAYERS)} layers, {len(BACKENDS)} backends"
    )
    st.page_link("pages/3_Runs.py", label="All runs", icon=":material/list:")
    if found.problems:
        names = words.plain(", ".join(path.name for path in list(found.problems)[:3]))
        files = "1 file" if len(found.problems) == 1 else f"{len(found.problems)} files"
        st.caption(f"{files} could not be read as runs, and left out: {names}")


with chrome.guarded():
    main()
