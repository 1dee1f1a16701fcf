"""The pickers of a workload: preset, layer, sizes, backends, and the rest under Advanced. Raw text in, checked later.

Sizes are text fields without limits on purpose: a number field would silently replace what it does not like.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from core.backends import BACKENDS, Backend
from core.glossary import explain
from core.layers import LAYERS, Layer
from core.modelconfig import mlp_of
from core.ui import session, words
from core.workload import (
    DTYPES,
    PASSES,
    STEPS_ARTICLE,
    STEPS_DEFAULT,
    Workload,
    WorkloadError,
    applies,
    field_names,
    from_preset,
    make,
    presets,
    to_fields,
    without_backend,
)

OWN = "Own sizes"
_CONFIG_TOLD = "pick:config-told"
#: More runs on one time axis are no longer read, they are searched.
BACKENDS_MAX = 4
_LAYERS = {layer.name: layer for layer in LAYERS}
_BACKENDS = {backend.name: backend for backend in BACKENDS}
_PRESETS = {preset.name: preset.title for _, preset in presets()}
_SELECTS = {"layer": tuple(_LAYERS), "dtype": tuple(DTYPES), "passes": tuple(PASSES)}


def load(fields: Mapping[str, str]) -> str | None:
    """Sets the pickers from a link's fields, before they are made. Returns a sentence for a choice that does not exist
    (the picker then keeps its default); sizes are taken as they are and checked with the rest."""
    problem = None
    for name, known in _SELECTS.items():
        value = fields.get(name, known[0])
        if value not in known:
            problem = problem or f"The link asks for {name} {value[:40]!r}, which is not one of {', '.join(known)}."
            value = known[0]
        _set(name, value)
    layer = _LAYERS[_get("layer")]
    wanted = fields.get("backend", BACKENDS[0].name).split(",")
    offered = [backend.name for backend in backends_for(layer)]
    kept = [name for name in dict.fromkeys(wanted) if name in offered]
    strange = next((name for name in wanted if name not in offered), None)
    if strange is not None:
        problem = problem or (
            f"The link asks for the backend {strange[:40]!r}, but {layer.title} can run on {', '.join(offered)}."
        )
    if len(kept) > BACKENDS_MAX:
        problem = problem or f"The link asks for {len(kept)} backends; the first {BACKENDS_MAX} are shown."
    _set("backends", kept[:BACKENDS_MAX] or offered[:1])
    for size in layer.sizes:
        _set(size.name, fields.get(size.name, str(size.default)))
    for flag in layer.flags:
        word = fields.get(flag.name, "on" if flag.default else "off")
        if word not in ("on", "off"):
            problem = problem or f"The link says {flag.name} {word[:40]!r}; it can be on or off."
            word = "on" if flag.default else "off"
        _set(flag.name, word == "on")
    _set("steps", fields.get("steps", str(STEPS_DEFAULT)))
    _set("seed", fields.get("seed", "0"))
    return problem


def are_set() -> bool:
    """Whether the pickers hold something: the first thing on a page is to load them."""
    return _key("layer") in st.session_state


def unknown_field(fields: Mapping[str, str]) -> str | None:
    """A field of a link that its layer does not have, None where there is none (or there is no such layer)."""
    layer = _LAYERS.get(fields.get("layer", LAYERS[0].name))
    return None if layer is None else next((name for name in fields if name not in field_names(layer)), None)


def show() -> dict[str, str]:
    """Draws the pickers where it is called; the fields as they stand, unchecked, with the backends in one, by commas."""
    _set("preset", _matching_preset())
    st.selectbox(
        "Preset",
        [OWN, *_PRESETS],
        format_func=_preset_title,
        key=_key("preset"),
        on_change=_take_preset,
        help=explain("preset"),
    )
    st.selectbox(
        "Layer",
        list(_LAYERS),
        format_func=lambda name: _LAYERS[name].title,
        key=_key("layer"),
        on_change=_take_layer,
        help=_LAYERS[_get("layer")].description,
    )
    layer = _LAYERS[_get("layer")]
    _sizes(layer)
    _backends(layer)
    with st.expander("Advanced"):
        st.segmented_control("Number format", list(DTYPES), key=_key("dtype"), required=True, help=explain("dtype"))
        st.segmented_control(
            "Passes",
            list(PASSES),
            format_func=PASSES.__getitem__,
            key=_key("passes"),
            required=True,
            help=explain("passes"),
        )
        st.text_input(
            "Profiled steps",
            key=_key("steps"),
            help=f"{STEPS_DEFAULT} give a spread to judge by; the article profiles {STEPS_ARTICLE}.",
        )
        st.text_input("Seed", key=_key("seed"), help="Where the random weights and inputs start from.")
    _model_config()
    return fields_now()


def _preset_title(name: str) -> str:
    """A preset's title; without a GPU it says where there is nothing recorded to show."""
    title = _PRESETS.get(name, name)
    there = name == OWN or session.has_gpu() or session.store().of(from_preset(name))
    return title if there else f"{title} (not recorded)"


def _sizes(layer: Layer) -> None:
    """Recorded sizes in one pick, and fields for any others."""
    recorded = _recorded(layer)
    now = tuple(str(_get(name)) for name in _size_fields(layer))
    at = next((index for index, one in enumerate(recorded) if _texts(one, layer) == now), None)
    _set("recorded", at)
    if recorded:
        st.selectbox(
            f"Recorded sizes ({len(recorded)})",
            list(range(len(recorded))),
            format_func=lambda index: words.sizes_and_flags(recorded[index]),
            key=_key("recorded"),
            placeholder="none: these are sizes of your own",
            on_change=_take_recorded,
            args=(recorded, layer),
            help=f"{' × '.join(size.title for size in layer.sizes)}. {explain('recorded')}",
        )
    else:
        st.caption(f"Nothing is recorded of it in {_get('dtype')}, {PASSES[_get('passes')].lower()}.")
    columns = st.columns(2)
    for index, size in enumerate(layer.sizes):
        columns[index % 2].text_input(size.title, key=_key(size.name), help=size.help)
    for flag in layer.flags:
        st.checkbox(flag.title, key=_key(flag.name), help=flag.help)


def _backends(layer: Layer) -> None:
    offered = backends_for(layer)
    st.multiselect(
        "Backends",
        [backend.name for backend in offered],
        format_func=lambda name: _BACKENDS[name].title,
        key=_key("backends"),
        max_selections=BACKENDS_MAX,
        placeholder="Choose up to four",
        help=explain("backend")
        + "\n\n"
        + "\n".join(f"- **{backend.title}**: {backend.description}" for backend in offered),
    )
    if not _get("backends"):
        st.caption(f"No backend is picked: {BACKENDS[0].title} is shown.")


def _model_config() -> None:
    with st.expander("From a model's config.json"):
        st.text_area(
            "config.json",
            key=_key("config"),
            height=120,
            placeholder='{"hidden_size": 4096, "intermediate_size": 14336, "hidden_act": "silu"}',
            help="The file that lies beside a model's weights: the widths and the activation of its gated MLP are read.",
        )
        st.button("Take its MLP", key="pick:take-config", on_click=_take_config, icon=":material/input:")
    told, read = st.session_state.get(_CONFIG_TOLD, ("", {}))
    now = fields_now()
    if told and all(now.get(name) == value for name, value in read.items()):
        st.caption(words.plain(told))


def fields_now() -> dict[str, str]:
    """The fields as the pickers stand."""
    layer = _LAYERS[_get("layer")]
    fields = {"layer": layer.name, **{size.name: str(_get(size.name)) for size in layer.sizes}}
    fields |= {flag.name: "on" if _get(flag.name) else "off" for flag in layer.flags}
    fields["backend"] = ",".join(_get("backends") or [BACKENDS[0].name])
    return fields | {name: str(_get(name)) for name in ("dtype", "passes", "steps", "seed")}


def workloads(fields: Mapping[str, str]) -> tuple[Workload, ...]:
    """One workload for each backend of the fields. Raises WorkloadError."""
    return tuple(make({**fields, "backend": name}) for name in fields["backend"].split(","))


def backends_for(layer: Layer) -> tuple[Backend, ...]:
    """The backends that can carry the layer out."""
    return tuple(backend for backend in BACKENDS if applies(backend, layer))


def _recorded(layer: Layer) -> list[Workload]:
    """Recorded sizes of the layer in the picked number format and passes, the smallest first."""
    found: dict[tuple[tuple[tuple[str, int], ...], tuple[tuple[str, bool], ...]], Workload] = {}
    for entry in session.store().entries():
        one = entry.head.workload
        if entry.recorded and (one.layer, one.dtype, one.passes) == (layer.name, _get("dtype"), _get("passes")):
            found.setdefault((one.sizes, one.flags), one)
    return [found[key] for key in sorted(found)]


def _size_fields(layer: Layer) -> tuple[str, ...]:
    return (*(size.name for size in layer.sizes), *(flag.name for flag in layer.flags))


def _texts(workload: Workload, layer: Layer) -> tuple[str, ...]:
    fields = to_fields(workload)
    return tuple(str(fields[name]) for name in _size_fields(layer))


def _matching_preset() -> str:
    try:
        own = workloads(fields_now())[0]
    except WorkloadError:
        return OWN
    found = {name: from_preset(name, passes=own.passes, dtype=own.dtype, steps=own.steps) for name in _PRESETS}
    exact = [name for name, preset in found.items() if preset == own]
    same_but_backend = [name for name, preset in found.items() if without_backend(preset) == without_backend(own)]
    return (exact or same_but_backend or [OWN])[0]


def _take_preset() -> None:
    name = _get("preset")
    if name != OWN:
        preset = from_preset(name)
        first = [preset.backend] if preset.backend != BACKENDS[0].name else []
        _load_sizes(preset, keep=list(dict.fromkeys((*first, *_get("backends"))))[:BACKENDS_MAX])


def _take_recorded(recorded: Sequence[Workload], layer: Layer) -> None:
    at = _get("recorded")
    if at is not None:
        _load_sizes(recorded[at], keep=_get("backends"))


def _load_sizes(workload: Workload, *, keep: Sequence[str]) -> None:
    """Takes a workload's layer, sizes and flags; the backends stay where the layer has them."""
    fields = {name: _word(value) for name, value in to_fields(workload).items()}
    kept = {field: str(_get(field)) for field in ("dtype", "passes", "steps")}
    load({**fields, **kept, "backend": _kept_backends(_LAYERS[workload.layer], keep)})


def _take_layer() -> None:
    kept = {field: str(_get(field)) for field in ("dtype", "passes", "steps", "seed")}
    layer = _LAYERS[_get("layer")]
    load({"layer": layer.name, "backend": _kept_backends(layer, _get("backends")), **kept})


def _take_config() -> None:
    try:
        found = mlp_of(_get("config"))
    except WorkloadError as problem:
        st.session_state[_CONFIG_TOLD] = (str(problem), {})
        return
    kept = {field: str(_get(field)) for field in ("dtype", "passes", "steps", "seed")}
    backends = _kept_backends(_LAYERS[found.fields["layer"]], _get("backends"))
    load({**kept, **found.fields, "backend": backends})
    st.session_state[_CONFIG_TOLD] = (found.told, dict(found.fields))


def _kept_backends(layer: Layer, wanted: Sequence[str]) -> str:
    offered = [backend.name for backend in backends_for(layer)]
    return ",".join([name for name in wanted if name in offered] or offered[:1])


def _word(value: object) -> str:
    return ("on" if value else "off") if isinstance(value, bool) else str(value)


def _key(name: str) -> str:
    return f"pick:{name}"


def _get(name: str) -> Any:
    return st.session_state[_key(name)]


def _set(name: str, value: object) -> None:
    st.session_state[_key(name)] = value
