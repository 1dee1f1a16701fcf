"""What the Shapes page knows of a sweep at hand: its points as facts, remembered as long as its files stay the same."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import streamlit as st

from core.analysis.ledger import PointFacts, SeriesFacts
from core.store import runfile, sweepfile
from core.store.files import stamp_of
from core.store.manifest import Device, Manifest
from core.store.runfile import RunFileError
from core.store.spans import Span
from core.store.sweepentry import SweepEntry
from core.store.sweepfacts import facts
from core.sweep import Sweep, axis_sizes
from core.ui import link, session, words

_SWEEPS_KEPT = 12
_DEVICES_KEPT = 500
#: Points whose process died tell no device.
_DEVICE_TRIES = 5
EXPLORE = "pages/1_Explore.py"


@dataclass(frozen=True, eq=False)
class Shown:
    """A sweep on screen: its entry, the manifests of its finished points in the plan's order, its series (one a backend),
    and both by the run's id."""

    entry: SweepEntry
    manifests: tuple[Manifest, ...]
    series: tuple[SeriesFacts, ...]
    by_run: Mapping[str, tuple[Manifest, SeriesFacts, PointFacts]]

    @property
    def sweep(self) -> Sweep:
        """What was swept."""
        return self.entry.head.sweep

    @property
    def measured(self) -> tuple[Manifest, ...]:
        """The manifests that tell a device; all of them where none does. A point whose process died tells none."""
        return tuple(one for one in self.manifests if one.device.kind != "unknown") or self.manifests

    @property
    def on_gpu(self) -> bool:
        """Whether all of it ran on a GPU."""
        return all(one.device.kind == "gpu" for one in self.measured)


def shown(entry: SweepEntry) -> Shown:
    """The sweep with all its finished points. A file that is damaged is left out; the store names it among its problems."""
    return _shown(entry.head.id, entry.origin, entry.stamp, session.sweeps().spans_beside(entry), entry)


@st.cache_resource(max_entries=_SWEEPS_KEPT, show_spinner="Reading the sweep ...")
def _shown(sweep_id: str, origin: str, stamp: str, beside: tuple[Span, ...], _entry: SweepEntry) -> Shown:
    manifests = session.sweeps().manifests(_entry)
    series = facts(_entry, manifests, beside)
    by_id = {manifest.id: manifest for manifest in manifests}
    by_run = {
        point.run_id: (by_id[point.run_id], one, point)
        for one in series
        for point in one.points
        if point.run_id in by_id
    }
    return Shown(_entry, manifests, series, by_run)


def device_of(entry: SweepEntry) -> Device | None:
    """What carried the sweep out, by its first point that tells; None where it has none that can be read."""
    paths = (entry.folder / sweepfile.name_of(order) for order in sorted(entry.done)[:_DEVICE_TRIES])
    found = (_device(path, stamp_of(path) or "") for path in paths)
    return next((device for device in found if device is not None and device.kind != "unknown"), None)


@st.cache_resource(max_entries=_DEVICES_KEPT, show_spinner=False)
def _device(path: Path, stamp: str) -> Device | None:
    try:
        return runfile.read_manifest(path).device
    except RunFileError:  # the store names it among its problems
        return None


def point_words(sweep: Sweep, values: tuple[int, ...]) -> str:
    """ "batch 16", or "batch 16 × intermediate 11,008"."""
    pairs = zip(axis_sizes(sweep), values, strict=True)
    return " × ".join(f"{size.title.lower()} {value:,}" for size, value in pairs)


def fixed_sizes(sweep: Sweep) -> dict[str, int]:
    """The sizes that stay the same, by name."""
    return {name: value for name, value in sweep.base.sizes if name not in sweep.axes}


def has_repeats(sweep: Sweep) -> bool:
    """Whether the list comes to some size more than once."""
    return len(set(sweep.points)) < len(sweep.points)


def axis_words(sweep: Sweep) -> str:
    """ "batch", or "batch × sequence": what changes."""
    return " × ".join(size.title.lower() for size in axis_sizes(sweep))


def link_to_run(found: Shown, run_id: str) -> None:
    """A link to a point's own timeline on Explore."""
    manifest, series, point = found.by_run[run_id]
    where = f"call {point.index + 1}, " if found.sweep.kind != "map" else ""
    again = f", round {point.round + 1}" if found.sweep.rounds > 1 else ""
    st.page_link(
        EXPLORE,
        label=words.plain(f"Timeline of {series.title}, {where}{point_words(found.sweep, point.values)}{again}"),
        query_params=link.to_run(manifest.workload, manifest.id),
        icon=":material/view_timeline:",
        help="Opens this point's own run on the Explore page: its kernels, operators and generated code.",
    )
