"""The pickers of a sweep: kind, one at hand, layer, sizes along their axes, backends, and the rest under Advanced.

Raw text in, checked later by make_sweep: a number field would silently replace what it does not like.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from core.backends import BACKENDS
from core.glossary import explain
from core.layers import LAYERS, Layer
from core.sweep import (
    BACKENDS_MAX,
    CACHES,
    COUNT_MAX,
    KINDS,
    LIMIT_MAX,
    MAP_STEPS,
    MODES,
    POINTS_MAX,
    STEPS,
    Sweep,
    make_sweep,
    size_lists,
    to_sweep_fields,
    traffic_axes,
)
from core.ui import words
from core.ui.pickers import backends_for
from core.workload import DTYPES, PASSES, WorkloadError

FIRST_BACKENDS = ("eager", "compile", "liger")
FIRST_LAYER = "geglu_mlp"
_TRAFFIC = "8, 128, 120\n16, 128, 60\n32, 256, 20\n8, 128, 400"
_TRAFFIC_BYTES_MAX = 200_000
_UPLOAD_TOLD = "shapes:traffic-told"
_KEPT = "shapes:kept"
_LOG = "traffic rows"
_LAYERS = {layer.name: layer for layer in LAYERS}
_BACKENDS = {backend.name: backend for backend in BACKENDS}
_AXES = ("axis", "axis2")
_VALUES = {"axis": "values", "axis2": "values2"}
# Short enough for the sidebar.
_KIND_TITLES = {"sweep": "Sweep", "map": "Win map", "traffic": "Traffic"}
_MODE_TITLES = {"shared": "One process lives on", "isolated": "Each starts fresh"}
_KIND_HELP = (
    "Sweep: one size changes. Win map: two sizes change, and each cell names the backend that is ahead. Traffic: "
    "the sizes of a log of yours, in their order, each weighted by how often it comes."
)


def are_set() -> bool:
    """Whether the pickers hold something: the first thing on a page is to load them."""
    return _key("layer") in st.session_state


def load(fields: Mapping[str, str]) -> str | None:
    """Sets the pickers from a link's fields, before they are made. Returns a sentence for a choice that does not exist
    (the picker then keeps its default); lists and sizes are taken as they are and checked with the rest."""
    problems: list[str] = []
    kind = _known("kind", fields.get("kind", "sweep"), tuple(KINDS), problems)
    layer = _LAYERS[_known("layer", fields.get("layer", FIRST_LAYER), tuple(_LAYERS), problems)]
    first = first_fields(kind, layer.name)
    names = tuple(size.name for size in layer.sizes)
    known = {*first, *names, "layer", "backends", "dtype", "passes", "steps", "seed", "kind", "mode", "cache", "mark"}
    known |= {"axis", "values", "axis2", "values2", "rows", "limit", *(flag.name for flag in layer.flags)}
    strange = next((name for name in fields if name not in known), None)
    if strange is not None:
        problems.append(f"The link names {strange[:40]!r}, which a sweep of this layer does not have; it is left out.")
    _set("kind", kind)
    _set("layer", layer.name)
    for axis, values in _VALUES.items():
        _set(axis, _known(axis, fields.get(axis, first[axis]), names, problems))
        chosen = first[values] if _get(axis) == first[axis] else _first_values(_get(axis), kind)
        _set(values, ", ".join(fields.get(values, chosen).replace(",", " ").split()))
    # A layer may have a size of that name, which a link then means unless it is one of traffic.
    rows = fields.get("rows", _TRAFFIC) if kind == "traffic" else _TRAFFIC
    in_one_line = "\n" not in rows and "," in rows  # as links to a sweep name its rows; else semicolons may part cells
    _set(_LOG, rows.replace(";", "\n") if in_one_line else rows)
    for size in layer.sizes:
        _set(size.name, fields.get(size.name, str(size.default)))
    for flag in layer.flags:
        word = _known(flag.name, fields.get(flag.name, "on" if flag.default else "off"), ("on", "off"), problems)
        _set(flag.name, word == "on")
    _set("backends", _backends_of(fields.get("backends", first["backends"]), layer, problems))
    for name, options in (("dtype", DTYPES), ("passes", PASSES), ("mode", MODES), ("cache", CACHES)):
        _set(name, _known(name, fields.get(name, first.get(name, next(iter(options)))), tuple(options), problems))
    _set("mark", _known("mark", fields.get("mark", "off"), ("off", "on"), problems) == "on")
    _set("steps", fields.get("steps", first["steps"]))
    _set("seed", fields.get("seed", "0"))
    _set("limit", fields.get("limit", ""))
    return problems[0] if problems else None


def first_fields(kind: str, layer: str) -> dict[str, str]:
    """What a kind starts with on a layer: a short list along the layer's first size, on the backends people compare."""
    own = _LAYERS[layer]
    offered = [backend.name for backend in backends_for(own)]
    first, last = own.sizes[0].name, own.sizes[-1].name
    return {
        "kind": kind,
        "layer": layer,
        "axis": first,
        "values": _first_values(first, kind),
        "axis2": last,
        "values2": _first_values(last, kind),
        "backends": ",".join(name for name in FIRST_BACKENDS if name in offered),
        "mode": "isolated" if kind == "map" else "shared",
        "steps": str(MAP_STEPS if kind == "map" else STEPS),
    }


def fields_now() -> dict[str, str]:
    """The fields for make_sweep as the pickers stand."""
    layer, kind = _LAYERS[_get("layer")], _get("kind")
    fields = {"kind": kind, "layer": layer.name}
    for axis in _axes_now():
        fields[axis] = _get(axis)
        fields[_VALUES[axis]] = ",".join(_get(_VALUES[axis]).replace(",", " ").split())
    if kind == "traffic":
        fields["rows"] = "\n".join(line.strip() for line in _get(_LOG).splitlines())
    fields |= {name: str(_get(name)) for name in fixed_sizes()}
    fields |= {flag.name: "on" if _get(flag.name) else "off" for flag in layer.flags}
    fields["backends"] = ",".join(_get("backends"))
    fields["mode"] = {"map": "isolated", "traffic": "shared"}.get(kind, _get("mode"))
    fields |= {"cache": _get("cache"), "mark": "on" if _get("mark") else "off"}
    fields |= {name: str(_get(name)) for name in ("dtype", "passes", "steps", "seed")}
    return fields | ({"limit": limit} if (limit := _get("limit").strip()) else {})


def picked(fields: Mapping[str, str]) -> Sweep:
    """The sweep of the fields. Raises WorkloadError."""
    if not fields["backends"]:
        raise WorkloadError("No backend is chosen; choose at least one.")
    return make_sweep(fields)


def fixed_sizes() -> tuple[str, ...]:
    """The sizes of the layer that stay the same."""
    layer = _LAYERS[_get("layer")]
    changing = {_get(axis) for axis in _axes_now()}
    if _get("kind") == "traffic":
        changing = set(_traffic_axes(layer))
    return tuple(size.name for size in layer.sizes if size.name not in changing)


def size_names(layer: str) -> tuple[str, ...]:
    """The names of a layer's sizes."""
    return tuple(size.name for size in _LAYERS[layer].sizes)


def show(at_hand: Mapping[str, str], shown: str | None) -> dict[str, str]:
    """Draws the pickers where it is called; the fields as they stand, unchecked. `at_hand` are the titles of the sweeps
    of this kind by id, `shown` the one that the pickers stand at."""
    _keep()
    st.segmented_control(
        "What changes", list(KINDS), format_func=_KIND_TITLES.__getitem__, key=_key("kind"), required=True, width="stretch",
        on_change=_take_kind, help=_KIND_HELP,
    )  # fmt: skip
    _set("at hand", shown if shown in at_hand else None)
    if at_hand:
        st.selectbox(
            f"At hand ({len(at_hand)})", list(at_hand), format_func=at_hand.__getitem__, key=_key("at hand"),
            placeholder="none: a list of your own", on_change=_take_at_hand,
            help=f"Sweeps of this kind that were carried out; one pick fills all that is below. {explain('sweep')} "
            + explain("recorded"),
        )  # fmt: skip
    st.selectbox(
        "Layer", list(_LAYERS), format_func=lambda name: _LAYERS[name].title, key=_key("layer"), on_change=_take_layer,
        help=_LAYERS[_get("layer")].description,
    )  # fmt: skip
    layer = _LAYERS[_get("layer")]
    if _get("kind") == "traffic":
        _traffic(layer)
    else:
        for axis in _axes_now():
            _axis(layer, axis)
    _fixed(layer)
    _backends(layer)
    if _get("kind") == "sweep":
        st.selectbox(
            "Between two sizes", list(MODES), format_func=_MODE_TITLES.__getitem__, key=_key("mode"),
            help=f"{explain('shared')} {explain('isolated')}",
        )  # fmt: skip
    with st.expander("Advanced"):
        _advanced()
    return fields_now()


def wanted_at_hand() -> str | None:
    """The sweep that was just picked from those at hand, once."""
    found: str | None = st.session_state.pop("shapes:taken", None)
    return found


def leave_out(names: Sequence[str]) -> None:
    """Takes backends out of the pick."""
    _set("backends", [name for name in _get("backends") if name not in names])


def load_sweep(sweep: Sweep) -> None:
    """Sets the pickers to a sweep that is at hand."""
    load(to_sweep_fields(sweep))


def _axis(layer: Layer, axis: str) -> None:
    second = axis == "axis2"
    titles = {size.name: size.title for size in layer.sizes}
    st.selectbox(
        "Second axis" if second else "Axis", list(titles), format_func=titles.__getitem__, key=_key(axis),
        on_change=_take_axis, args=(axis,),
        help="The size that changes. " + " ".join(f"{size.title}: {size.help}" for size in layer.sizes),
    )  # fmt: skip
    lists = size_lists(_get(axis))
    now = tuple(_get(_VALUES[axis]).replace(",", " ").split())
    _set(f"list {axis}", next((title for title, values in lists.items() if tuple(map(str, values)) == now), None))
    st.selectbox(
        "Ready-made list", list(lists), key=_key(f"list {axis}"), placeholder="none: a list of your own",
        on_change=_take_list, args=(axis,),
        help=f"It fills the field below, which takes any other list too. {explain('primes')}",
    )  # fmt: skip
    title = titles[_get(axis)]
    st.text_input(
        f"Sizes for {title.lower()}, in order", key=_key(_VALUES[axis]),
        help=f"Whole numbers by commas, in the order in which they are called; at most {POINTS_MAX} points in all. "
        + ("Of a win map each counts once." if _get("kind") == "map" else "Order and repeats decide what recompiles."),
    )  # fmt: skip


def _traffic(layer: Layer) -> None:
    with_seq = len(_traffic_axes(layer)) != 1
    st.file_uploader(
        "Traffic as CSV", type=["csv", "txt", "tsv"], key=_key("csv"), max_upload_size=1, on_change=_take_csv,
        help=f"Rows of batch, seq, count; a first line of words names the columns, in any order. {explain('traffic')}",
    )  # fmt: skip
    told = st.session_state.get(_UPLOAD_TOLD)
    if told:
        st.warning(words.plain(told), icon=":material/info:")
    st.text_area(
        "batch, seq, count", key=_key(_LOG), height=150,
        help="A row a size, in the order in which it comes; the count is how often it comes before the next row, at most "
        f"{COUNT_MAX:,}. At most {POINTS_MAX} rows."
        + ("" if with_seq else " This layer has no sequence: batch times seq is its batch."),
    )  # fmt: skip


def _fixed(layer: Layer) -> None:
    fixed = [size for size in layer.sizes if size.name in fixed_sizes()]
    columns = st.columns(2)
    for index, size in enumerate(fixed):
        columns[index % 2].text_input(size.title, key=_key(size.name), help=f"{size.help} The same at every point.")
    for flag in layer.flags:
        st.checkbox(flag.title, key=_key(flag.name), help=flag.help)


def _backends(layer: Layer) -> None:
    offered = backends_for(layer)
    st.multiselect(
        "Backends", [backend.name for backend in offered], format_func=lambda name: _BACKENDS[name].title,
        key=_key("backends"), max_selections=BACKENDS_MAX, placeholder=f"Choose up to {BACKENDS_MAX}",
        help=explain("backend") + "\n\n" + "\n".join(f"- **{one.title}**: {one.description}" for one in offered),
    )  # fmt: skip


def _advanced() -> None:
    st.segmented_control(
        "Passes", list(PASSES), format_func=PASSES.__getitem__, key=_key("passes"), required=True, help=explain("passes")
    )  # fmt: skip
    st.segmented_control("Number format", list(DTYPES), key=_key("dtype"), required=True, help=explain("dtype"))
    st.segmented_control(
        "Compiler's disk cache", list(CACHES), format_func=CACHES.__getitem__, key=_key("cache"), required=True,
        help=explain("disk cache"),
    )  # fmt: skip
    st.checkbox("Mark the changing sizes dynamic", key=_key("mark"), help=explain("mark_dynamic"))
    left, right = st.columns(2)
    left.text_input(
        "Recompile limit", key=_key("limit"), placeholder="PyTorch's, 8",
        help=f"{explain('recompile limit')} From 1 to {LIMIT_MAX:,}; empty leaves PyTorch's own.",
    )  # fmt: skip
    right.text_input("Profiled steps", key=_key("steps"), help="How many steps each point is profiled for.")
    left.text_input("Seed", key=_key("seed"), help="Where the random weights and inputs start from.")


def _axes_now() -> tuple[str, ...]:
    return {"sweep": _AXES[:1], "map": _AXES}.get(_get("kind"), ())


def _traffic_axes(layer: Layer) -> tuple[str, ...]:
    try:
        return traffic_axes(layer)
    except WorkloadError:  # said by make_sweep, with the rest
        return ()


def _backends_of(text: str, layer: Layer, problems: list[str]) -> list[str]:
    offered = [backend.name for backend in backends_for(layer)]
    wanted = list(dict.fromkeys(filter(None, text.split(","))))
    strange = next((name for name in wanted if name not in offered), None)
    if strange is not None:
        problems.append(
            f"The link asks for the backend {strange[:40]!r}, but {layer.title} can run on {', '.join(offered)}."
        )
    kept = [name for name in wanted if name in offered]
    if len(kept) > BACKENDS_MAX:
        problems.append(f"The link asks for {len(kept)} backends; the first {BACKENDS_MAX} are taken.")
    return kept[:BACKENDS_MAX] or offered[:1]


def _first_values(axis: str, kind: str) -> str:
    powers = size_lists(axis)["Powers of two"]
    return ", ".join(map(str, powers[3:6] if kind == "map" else powers[2:7]))


def _known(name: str, value: str, known: Sequence[str], problems: list[str]) -> str:
    if value in known:
        return value
    problems.append(f"The link asks for {name} {value[:40]!r}, which is not one of {', '.join(known)}.")
    return known[0]


def _take_kind() -> None:
    kept = {name: str(_get(name)) for name in ("dtype", "passes", "seed")}
    load({**first_fields(_get("kind"), _get("layer")), **kept, "backends": ",".join(_get("backends"))})
    st.session_state["shapes:kind-taken"] = True


def kind_was_taken() -> bool:
    """Whether another kind was just picked, once: one at hand is then more telling than a list nobody ran."""
    return bool(st.session_state.pop("shapes:kind-taken", False))


def _take_layer() -> None:
    kept = {name: str(_get(name)) for name in ("dtype", "passes", "seed", "mode", "cache", "steps")}
    layer = _LAYERS[_get("layer")]
    offered = {backend.name for backend in backends_for(layer)}
    backends = [name for name in _get("backends") if name in offered]
    kept |= {"rows": _get(_LOG)} if _get("kind") == "traffic" else {}
    kept |= {"backends": ",".join(backends)} if backends else {}
    load({**first_fields(_get("kind"), layer.name), **kept})


def _take_axis(axis: str) -> None:
    _set(_VALUES[axis], _first_values(_get(axis), _get("kind")))


def _take_list(axis: str) -> None:
    title = _get(f"list {axis}")
    if title is not None:
        _set(_VALUES[axis], ", ".join(map(str, size_lists(_get(axis))[title])))


def _take_at_hand() -> None:
    st.session_state["shapes:taken"] = _get("at hand")


def _take_csv() -> None:
    file = _get("csv")
    st.session_state.pop(_UPLOAD_TOLD, None)
    if file is None:
        return
    data = file.getvalue()
    try:
        if len(data) > _TRAFFIC_BYTES_MAX:
            raise WorkloadError(
                f"The file has {words.memory(len(data))}, far more than {POINTS_MAX} rows need; sum it up first."
            )
        if not data.strip():
            raise WorkloadError("The file is empty; give rows of batch, seq, count.")
        _set(_LOG, data.decode("utf-8-sig"))
    except UnicodeDecodeError:
        st.session_state[_UPLOAD_TOLD] = "The file is no text in UTF-8; save it as CSV, then upload it again."
    except WorkloadError as problem:
        st.session_state[_UPLOAD_TOLD] = str(problem)


def _key(name: str) -> str:
    return f"shape:{name}"


def _get(name: str) -> Any:
    return st.session_state.get(_key(name), st.session_state.get(_KEPT, {}).get(name))


def _set(name: str, value: object) -> None:
    st.session_state[_key(name)] = value
    st.session_state.setdefault(_KEPT, {})[name] = value


def _keep() -> None:
    """Streamlit forgets a picker that is not drawn for a while, such as the second axis: what it held comes back."""
    kept = st.session_state.setdefault(_KEPT, {})
    for name in kept:
        kept[name] = st.session_state.setdefault(_key(name), kept[name])
