"""FusionScope's home page: what this is, what is on this machine, and the ways in."""

import streamlit as st

from core.backends import BACKENDS
from core.layers import LAYERS
from core.ui import chrome, link, session, words
from core.workload import from_preset, offers, presets, with_changes


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
    st.subheader("Start here", anchor=False)
    for column, (layer, preset) in zip(st.columns(len(presets())), presets(), strict=True):
        with column.container(border=True, height="stretch"):
            base = from_preset(preset.name)
            st.markdown(f"**{preset.title}**")
            st.caption(layer.description)
            st.caption(words.fields(base))
            for backend in BACKENDS:
                if offers(preset, backend):
                    workload = with_changes(base, backend=backend.name)
                    st.page_link(
                        "pages/1_Explore.py",
                        label=backend.title,
                        query_params=link.to_run(workload),
                        icon=":material/arrow_forward:",
                        help=backend.description,
                    )
    st.page_link("pages/1_Explore.py", label="Or explore with sizes of your own", icon=":material/tune:")


def _machine() -> None:
    st.subheader("On this machine", anchor=False)
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
        f"Driver {device.driver}, CUDA {device.cuda}"
        if device.kind == "gpu"
        else "No GPU that torch can use: live runs speak of operators on the CPU, recordings of kernels on a GPU",
        ", ".join(f"{name.replace('_', '-')} {version}" for name, version in machine.versions.items() if version),
        f"Free memory when the worker started: {words.memory(machine.rates.free_memory_bytes)}",
    ]
    titles = {backend.name: backend.title for backend in BACKENDS}
    facts += [f"{titles[name]}: {sentence}" for name, sentence in machine.gaps.items()]
    st.markdown("\n".join(f"- {fact}" for fact in facts))


def _runs() -> None:
    st.subheader("Runs at hand", anchor=False)
    entries = session.store().entries()
    recorded = [entry for entry in entries if entry.recorded]
    devices = sorted({entry.manifest.device.name for entry in recorded})
    st.markdown(
        f"- {len(recorded)} recordings" + (f", made on {words.plain(', '.join(devices))}" if devices else "") + "\n"
        f"- {len(entries) - len(recorded)} runs of your own\n"
        f"- {len(LAYERS)} layers, {len(BACKENDS)} backends"
    )
    broken = session.store().unreadable()
    if broken:
        names = words.plain(", ".join(path.name for path in broken[:3]))
        st.caption(f"{len(broken)} file(s) could not be read as runs and are left out: {names}")


with chrome.guarded():
    main()
