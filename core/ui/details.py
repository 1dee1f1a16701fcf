"""What a run stands on: device, versions, protocol, clocks, numeric errors, notes, and the file itself."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from core.analysis.numerics import Difference, mismatch
from core.analysis.prediction import predictions
from core.analysis.spread import Spread
from core.glossary import explain
from core.store.entry import Entry
from core.store.manifest import Device, Manifest
from core.ui import words


def show(entry: Entry, *, busy_us: Spread | None = None) -> None:
    """Device, versions, protocol, clocks, errors and notes: everything a number on this page can be followed to."""
    manifest = entry.manifest
    st.subheader("Details", anchor="details", help="Everything that a number on this page can be followed to.")
    left, right = st.columns(2)
    with left:
        st.markdown(
            "**Device and versions**", help="What carried the run out, and the software that shapes its result."
        )
        _facts({
            "Device": manifest.device.name,
            "Memory": words.memory(manifest.device.memory_bytes),
            **_build(manifest.device),
            "Driver": manifest.device.driver or words.UNKNOWN if manifest.device.kind == "gpu" else "none (CPU)",
            **{name.replace("_", "-"): version or _missing(name) for name, version in manifest.versions.items()},
            "Taken": manifest.created[:19].replace("T", " ") + " UTC",
            "Run": manifest.id,
        })  # fmt: skip
    with right:
        st.markdown("**How it was measured**", help=explain("profiled") + " " + explain("sustained load"))
        protocol = manifest.protocol
        _facts({
            "Before the profile": f"{protocol.warmup_calls} warm-up calls, then {protocol.schedule_wait} step waited and "
            f"{protocol.schedule_warmup} of profiler warm-up",
            "Profiled": _profiled(manifest),
            "Unprofiled step": manifest.step_us.how if manifest.step_us else words.UNKNOWN,
            "Sustained load": _load(manifest),
            "CUDA-graph replay": _replay(manifest),
            "Clock at the profile": f"{words.clock_range(manifest.window_clocks)}, {words.throttle(manifest.window_clocks)}"
            if manifest.device.kind == "gpu"
            else "unknown: NVML tells it for NVIDIA GPUs alone",
            "Clock in the burst": words.clock_range(manifest.step_clocks),
            "Other processes": _others(manifest),
            "Whole run": f"{manifest.seconds:.1f} s",
        })  # fmt: skip
    _predictions(entry, busy_us)
    if manifest.errors:
        st.markdown("**Against the same layer in eager fp32**", help=explain("numeric error"))
        st.dataframe(
            pd.DataFrame([{"Tensor": e.of, "‖out − ref‖ / ‖ref‖": e.relative, "Largest difference": e.largest,
                           "Finite": e.finite} for e in manifest.errors]),
            hide_index=True, placeholder=words.UNKNOWN, key="errors-table",
            column_config={
                "Tensor": st.column_config.TextColumn(help="What was compared: the output, or a gradient."),
                "‖out − ref‖ / ‖ref‖": st.column_config.NumberColumn(format="%.3g", help=explain("numeric error")),
                "Largest difference": st.column_config.NumberColumn(format="%.3g", help="Of any one element, absolute."),
                "Finite": st.column_config.CheckboxColumn(help="Whether no element is NaN or infinite."),
            },
        )  # fmt: skip
    for note in manifest.notes:
        st.caption(words.plain(note))
    try:
        whole = entry.path.read_bytes()
    except OSError:
        st.caption("The file of this run is gone, so it cannot be downloaded.")
        return
    st.download_button(
        "Download this run",
        data=whole,
        file_name=entry.path.name,
        mime="application/zip",
        icon=":material/download:",
        help="One zip: the manifest, the Chrome trace (opens in Perfetto) and the generated code.",
    )


def mismatch_of(manifest: Manifest) -> str | None:
    """Why a run did not compute its layer, in a sentence; None where rounding explains what is known of it."""
    found = [Difference(error.of, error.relative, error.finite) for error in manifest.errors]
    return mismatch(found, manifest.workload.dtype)


def _predictions(entry: Entry, busy_us: Spread | None) -> None:
    """What was predicted before the run beside what came, each with how many times it came."""
    manifest = entry.manifest
    if manifest.predicted is None:
        return
    # On a CPU the step is the device's work.
    work = busy_us if manifest.device.kind == "gpu" else entry.head.step_us
    found = predictions(
        work_us=manifest.predicted.work_us,
        peak_bytes=manifest.predicted.peak_bytes,
        compile_s=manifest.predicted.compile_s,
        measured_work_us=work.median if work else None,
        measured_peak_bytes=manifest.peak_memory_bytes,
        measured_compile_s=sum(one.first_call_s for one in manifest.compiles) if manifest.compiles else None,
    )
    show_as = {
        "us": words.time,
        "bytes": lambda value: words.memory(None if value is None else int(value)),
        "s": _seconds,
    }
    st.markdown("**Predicted before the run**", help=explain("prediction"))
    st.dataframe(
        pd.DataFrame([{"What": one.what, "Predicted": show_as[one.unit](one.predicted),
                       "Measured": show_as[one.unit](one.measured), "Came": one.factor} for one in found]),
        hide_index=True, placeholder=words.UNKNOWN, key="prediction-table",
        column_config={
            "What": st.column_config.TextColumn(help="What was predicted."),
            "Predicted": st.column_config.TextColumn(help=explain("prediction")),
            "Measured": st.column_config.TextColumn(help="What came; work is the median busy time of a step, or the whole "
                                                    "step of a CPU run."),
            "Came": st.column_config.NumberColumn(format="%.2f times", help="Measured over predicted."),
        },
    )  # fmt: skip


def _seconds(value: float | None) -> str:
    return words.UNKNOWN if value is None else f"{value:.1f} s"


def _missing(name: str) -> str:
    return "none" if name == "cuda" else "not installed"


def _build(device: Device) -> dict[str, str]:
    if device.kind == "cpu":
        return {"Threads": str(device.cores or words.UNKNOWN)}
    return {
        "Compute capability": device.compute_capability or words.UNKNOWN,
        "Multiprocessors": str(device.multiprocessors or words.UNKNOWN),
    }


def _facts(found: dict[str, str]) -> None:
    st.markdown("\n".join(f"- {words.plain(name)}: {words.plain(value)}" for name, value in found.items()))


def _load(manifest: Manifest) -> str:
    load = manifest.load
    if load is None:
        if manifest.protocol.light:
            return "not taken: a light run, one of many"
        return words.UNKNOWN if manifest.device.kind == "gpu" else "not taken on a CPU"
    known = [sample for sample in load.clocks if sample.sm_mhz is not None]
    told = (
        f"SM {words.clock_range(load.clocks)}, {words.peak_power(load.clocks)}, {words.throttle(load.clocks)}"
        if known
        else f"clocks unknown: {load.clocks_why or 'NVML gave no reading'}"
    )
    return f"step {words.time(load.step_us.median)} (median of {load.step_us.n:,} in {load.seconds:.1f} s), {told}"


def _profiled(manifest: Manifest) -> str:
    if not manifest.profile_attempts:
        return "nothing: the run failed before"
    attempts = manifest.profile_attempts
    return f"{manifest.protocol.steps} steps, in {attempts} attempt{'' if attempts == 1 else 's'}"


def _replay(manifest: Manifest) -> str:
    if manifest.graph_replay_us is None:
        return manifest.graph_replay_why or words.UNKNOWN
    return f"captured once, replayed {len(manifest.graph_replay_us.values)} times"


def _others(manifest: Manifest) -> str:
    if manifest.device.kind != "gpu":
        return "not looked for on a CPU"
    if manifest.other_processes is None:
        return words.UNKNOWN
    return f"{len(manifest.other_processes)} on this GPU" if manifest.other_processes else "NVML listed none"
