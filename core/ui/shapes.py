"""What the Shapes page shows: which sweep answers a pick, how a link is followed, and what stands at the top."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import streamlit as st

from core.analysis.wording import counted
from core.glossary import explain
from core.store.sweepentry import SweepEntry
from core.sweep import CACHES, KINDS, MODES, Sweep, axis_sizes, make_sweep, to_sweep_fields
from core.ui import notice, session, shapes_link, shapes_pickers, words
from core.ui.shapes_data import Shown, axis_words, device_of
from core.workload import PASSES, WorkloadError, flag_words, layer_of

PAGE = "pages/2_Shapes.py"
_WANTED = "shapes:wanted"
_SHOWN = "shapes:shown"
_VALUES_SHOWN = 14
_NEAREST_MAX = 4
#: Of each kind; six in all.
_WAYS_IN_MAX = {"sweep": 4, "map": 1, "traffic": 1}
#: What a sweep's progress is called while it is not over.
_LIVE = ("running", "waiting")


@dataclass(frozen=True)
class Found:
    """The sweep that was picked (None where the pick is none, with the reason), and the one on screen, which is `stale` where
    it is not the one picked: nobody carried that out yet."""

    picked: Sweep | None
    problem: str | None
    entry: SweepEntry | None
    stale: bool


def follow_link() -> None:
    """Sets the pickers from the link; what is wrong with it is kept as a notice."""
    given, told = shapes_link.asked()
    fields = {name: value for name, value in given.items() if name not in (shapes_link.ID, *shapes_link.LOOKS)}
    entry = None
    at_hand = not fields.keys() - {"kind", "layer", "axis"}
    if wanted := given.get(shapes_link.ID, ""):
        entry = session.sweeps().get(wanted)
        if entry is None:
            told = f"The sweep {wanted[:80]} is not on this machine; " + (
                "one that is here is shown." if at_hand else "the sizes that the link names are shown."
            )
        elif fields and not _is_of(entry.head.sweep, fields):
            told = f"The sweep {wanted[:80]} is of other sizes than the link names; what the link names is shown."
            own, entry = to_sweep_fields(entry.head.sweep), None
            if all(fields.get(name, own.get(name)) == own.get(name) for name in ("kind", "layer", "axis", "axis2")):
                fields = own | fields  # a link that names a few sizes means the rest of the sweep's
    if entry is None and at_hand:
        entry = _first([one for one in session.sweeps().entries() if _is_of_kind(one.head.sweep, fields)])
    if entry is not None:
        take(entry)
    else:
        told = shapes_pickers.load(fields) or told
    notice.keep("shapes", told)


def take(entry: SweepEntry) -> None:
    """Sets the pickers to a sweep that is here, and shows that one of several of equal sizes."""
    shapes_pickers.load_sweep(entry.head.sweep)
    st.session_state[_WANTED] = entry.head.id


def want(sweep_id: str) -> None:
    """Remembers which of several sweeps of equal sizes this visit wants to see."""
    st.session_state[_WANTED] = sweep_id


def settle() -> None:
    """Before the pickers are drawn: takes a sweep that was just picked from those at hand, or, where another kind was just
    picked, one of that kind."""
    taken = shapes_pickers.wanted_at_hand()
    entry = session.sweeps().get(taken) if taken else None
    if entry is None and shapes_pickers.kind_was_taken():
        now = shapes_pickers.fields_now()
        entry = _first([one for one in session.sweeps().entries() if one.head.sweep.kind == now["kind"]], now["layer"])
    if entry is not None:
        take(entry)


def at_hand() -> dict[str, str]:
    """The titles of the sweeps of the picked kind, by id, newest first; no two are alike."""
    kind = shapes_pickers.fields_now()["kind"]
    own = [entry for entry in session.sweeps().entries() if entry.head.sweep.kind == kind]
    return words.distinct({entry.head.id: _listed(entry) for entry in own})


def found_for(fields: Mapping[str, str]) -> Found:
    """The sweep that the fields name and the best one at hand of it. Where there is none, what was on screen before, of the
    same layer, stays."""
    store = session.sweeps()
    picked, problem = None, None
    try:
        picked = shapes_pickers.picked(fields)
    except WorkloadError as error:
        problem = str(error)
    if picked is not None:
        own = store.of(picked)
        wanted = next((one for one in own if one.head.id == st.session_state.get(_WANTED)), None)
        entry = wanted or next(iter(own), None)
        if entry is not None:
            st.session_state[_SHOWN] = entry.head.id
            return Found(picked, None, entry, stale=False)
    before = store.get(st.session_state.get(_SHOWN, ""))
    if before is not None and before.head.sweep.base.layer != fields["layer"]:
        before = None
    return Found(picked, problem, before, stale=True)


def title(found: Shown) -> None:
    """Which sweep is on screen, and where its numbers come from."""
    sweep, entry = found.sweep, found.entry
    layer = layer_of(sweep.base)
    what = {
        "sweep": f"{axis_words(sweep)} changes",
        "map": f"who wins over {axis_words(sweep)}",
        "traffic": "your traffic",
    }
    st.header(f"{layer.title}: {what[sweep.kind]}", anchor=False, help=f"{explain('sweep')} {layer.description}")
    st.markdown(_fields(sweep))
    with st.container(horizontal=True, vertical_alignment="center", key="origin"):
        for place in dict.fromkeys(words.place(one.device, entry.origin) for one in found.measured):
            st.badge(
                words.badge(place),
                icon={"recorded": ":material/save:", "live": ":material/sensors:"}.get(
                    entry.origin, ":material/upload:"
                ),
                color="green" if entry.origin == "live" else "blue",
                help=words.origin_help(entry.origin),
            )
        st.badge(
            words.badge(_mode(found)), color="gray",
            help=explain("win map") if sweep.kind == "map" else explain(sweep.mode),
        )  # fmt: skip
        if not entry.complete and not is_running(entry.head.id):  # its progress stands below, and is newer
            st.badge(
                f"{len(entry.done):,} of {counted(entry.total, 'run')}", color="orange",
                help="This sweep is unfinished: what is below stands on the points that are there.",
            )  # fmt: skip
        if found.manifests:
            st.caption(words.plain(words.origin(found.measured[0])) + " (its first point)")


def is_running(sweep_id: str) -> bool:
    """Whether a sweep is being measured, or waits for its turn."""
    progress = session.sweep_progress(sweep_id)
    return progress is not None and progress.state in _LIVE


def not_run_yet(found: Found) -> None:
    """Says that nobody carried the pick out yet, and names the nearest sweeps at hand."""
    if found.picked is not None:
        left = " Below is still the sweep that was picked before." if found.entry is not None else ""
        st.warning(words.plain(f"Not run yet: {found.picked.title}.{left}"), icon=":material/pending:")
    entries = [one for one in session.sweeps().entries() if found.entry is None or one.head.id != found.entry.head.id]
    near = sorted(entries, key=lambda one: _distance(one.head.sweep, shapes_pickers.fields_now()))
    if not near:
        if found.entry is None:
            st.info(
                "There are no sweeps here yet. Pick sizes and press Run, upload a sweep below, or record one with: "
                "python -m core record --sweep layer=geglu_mlp axis=batch values=4,8,16 backends=eager,compile"
            )
        return
    st.caption("Nearest sweeps at hand:")
    with st.container(horizontal=True):
        nearest = near[:_NEAREST_MAX]
        titles = words.distinct({entry.head.id: _listed(entry) for entry in nearest})
        for entry in nearest:
            st.page_link(
                PAGE, label=words.plain(titles[entry.head.id]), icon=":material/near_me:",
                query_params=shapes_link.to_sweep(entry.head.sweep, entry.head.id),
            )  # fmt: skip


def ways_in() -> tuple[SweepEntry, ...]:
    """The sweeps that a newcomer is offered: the newest recorded one over each size of each layer, and of a few kinds."""
    found: dict[tuple[str, str, tuple[str, ...]], SweepEntry] = {}
    for entry in session.sweeps().entries():
        sweep = entry.head.sweep
        if entry.recorded:
            found.setdefault((sweep.kind, sweep.base.layer, sweep.axes), entry)
    of_kind = {kind: [one for one in found.values() if one.head.sweep.kind == kind] for kind in KINDS}
    return tuple(one for kind, own in of_kind.items() for one in own[: _WAYS_IN_MAX[kind]])


def _distance(sweep: Sweep, fields: Mapping[str, str]) -> tuple[int, bool, bool]:
    """How far a sweep is from a pick: layer first (one with sizes of the same names is nearer than another), then kind, then
    axes. Smaller is nearer."""
    layer, axes = layer_of(sweep.base), tuple(fields[name] for name in ("axis", "axis2") if name in fields)
    alike = {size.name for size in layer.sizes} == set(shapes_pickers.size_names(fields["layer"]))
    far = 0 if layer.name == fields["layer"] else 1 if alike else 2
    return far, sweep.kind != fields["kind"], sweep.axes != axes


def _fields(sweep: Sweep) -> str:
    """What changes, what stays the same, and how it was carried out, in a line."""
    base = sweep.base
    titles = {size.name: size.title.lower() for size in layer_of(base).sizes}
    parts = []
    if sweep.kind == "map":
        for at, size in enumerate(axis_sizes(sweep)):
            parts.append(f"{size.title.lower()} {_values(dict.fromkeys(point[at] for point in sweep.points))}")
    elif sweep.kind == "sweep":
        parts.append(f"{axis_words(sweep)} {_values([point[0] for point in sweep.points])}")
    else:
        parts.append(f"{counted(len(sweep.points), 'row')}, **{sum(sweep.counts):,}** calls")
    parts += [f"{titles[name]} **{value:,}**" for name, value in base.sizes if name not in sweep.axes]
    parts += [*flag_words(base), base.dtype, PASSES[base.passes].lower(), f"{base.steps} profiled steps a point"]
    parts += [f"disk cache {CACHES[sweep.cache].lower()}"] if sweep.cache != "cold" else []
    parts += ["changing sizes marked dynamic"] if sweep.mark_dynamic else []
    parts += [f"recompile limit {sweep.recompile_limit:,}"] if sweep.recompile_limit is not None else []
    return " · ".join(parts)


def _values(values: Sequence[int] | dict[int, None]) -> str:
    listed = [f"{value:,}" for value in values]
    if len(listed) > _VALUES_SHOWN:
        listed = [*listed[: _VALUES_SHOWN - 1], f"… {listed[-1]} ({len(listed)} in all)"]
    return "**" + " · ".join(listed) + "**"


def _mode(found: Shown) -> str:
    sweep = found.sweep
    points = counted(len(sweep.points), "cell" if sweep.kind == "map" else "point")
    if sweep.kind == "map":
        begun = len({point.index for one in found.series for point in one.points})
        measured = points if begun == len(sweep.points) else f"{begun:,} of {points} measured"
        return f"{measured}, {sweep.rounds} rounds each, each compiled anew"
    return f"{points}, {MODES[sweep.mode][0].lower()}{MODES[sweep.mode][1:]}"


def _listed(entry: SweepEntry) -> str:
    """A sweep among others: what, on which device, when, and how much of it is there."""
    sweep = entry.head.sweep
    device = device_of(entry)
    parts = [
        _sizes_listed(sweep),
        sweep.mode if sweep.kind == "sweep" else "",
        layer_of(sweep.base).title,
        sweep.base.passes if sweep.base.passes != "fwd" else "",
        words.device(device) if device is not None else "device unknown",
        entry.head.created[:16].replace("T", " "),
        "" if entry.complete else f"{len(entry.done):,} of {entry.total:,} done",
        "" if entry.origin == "live" else entry.origin,
    ]
    return " · ".join(part for part in parts if part)


def _sizes_listed(sweep: Sweep) -> str:
    """ "batch 4 to 64", "batch × intermediate, 16 cells" or "40 rows of traffic": short, and what tells sweeps apart first."""
    if sweep.kind == "map":
        return f"{axis_words(sweep)}, {counted(len(sweep.points), 'cell')}"
    if sweep.kind == "traffic":
        return f"{counted(len(sweep.points), 'row')} of traffic"
    values = [value for value, *_ in sweep.points]
    low, high = min(values), max(values)
    return f"{axis_words(sweep)} {low:,} to {high:,}" if low < high else f"{axis_words(sweep)} {low:,}"


def _first(entries: Sequence[SweepEntry], layer: str = shapes_pickers.FIRST_LAYER) -> SweepEntry | None:
    """What is shown to somebody who asked for nothing: a whole sweep of the layer that changes a single size, on as many
    backends as there are."""
    order = list(KINDS)
    ranked = sorted(
        entries,
        key=lambda one: (
            one.head.sweep.base.layer != layer,
            order.index(one.head.sweep.kind),
            not one.complete,
            one.head.sweep.mode != "shared",
            -len(one.head.sweep.backends),
        ),
    )
    return next(iter(ranked), None)


def _is_of_kind(sweep: Sweep, fields: Mapping[str, str]) -> bool:
    """Whether a sweep is of the kind, layer and first axis that are named, if they are."""
    kind, layer = fields.get("kind", "sweep"), fields.get("layer", sweep.base.layer)
    return (sweep.kind, sweep.base.layer) == (kind, layer) and fields.get("axis", sweep.axes[0]) == sweep.axes[0]


def _is_of(sweep: Sweep, fields: Mapping[str, str]) -> bool:
    """Whether a sweep is what the fields name; they need not name all of it."""
    try:
        return make_sweep({**to_sweep_fields(sweep), **fields}) == sweep
    except WorkloadError:
        return False
