"""The pickers of a workload: preset, layer, sizes, backend, and the rest under Advanced. Raw text in, checked later.

Sizes are text fields without limits on purpose: a number field would silently replace what it does not like.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import streamlit as st

from core.backends import BACKENDS, Backend
from core.glossary import explain
from core.layers import LAYERS, Layer
from core.workload import (
    DTYPES,
    PASSES,
    STEPS_ARTICLE,
    STEPS_DEFAULT,
    WorkloadError,
    applies,
    field_names,
    from_preset,
    make,
    presets,
    to_fields,
    without_backend,
)

CUSTOM = "Own sizes"
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
    offered = [backend.name for backend in backends_for(layer)]
    backend = fields.get("backend", offered[0])
    if backend not in offered:
        problem = problem or (
            f"The link asks for the backend {backend[:40]!r}, but {layer.title} can run on {', '.join(offered)}."
        )
        backend = offered[0]
    _set("backend", backend)
    for size in layer.sizes:
        _set(size.name, fields.get(size.name, str(size.default)))
    for flag in layer.flags:
        word = fields.get(flag.name, "on" if flag.default else "off")
        if word not in ("on", "off"):
            problem = problem or f"The link says {flag.name} {word[:40]!r}; it can be on or off."
            word = "on" if flag.default else "off"
        _set(flag.name, word == "on")
    for option in _BACKENDS[backend].options:
        choices = {str(choice): choice for choice in option.choices}
        word = fields.get(option.name, str(option.choices[0]))
        if word not in choices:
            problem = problem or f"The link says {option.name} {word[:40]!r}, which is not one of {', '.join(choices)}."
        _set(option.name, choices.get(word, option.choices[0]))
    _set("steps", fields.get("steps", str(STEPS_DEFAULT)))
    _set("seed", fields.get("seed", "0"))
    return problem


def are_set() -> bool:
    """Whether the pickers hold something: the first thing on a page is to load them."""
    return _key("layer") in st.session_state


def unknown_field(fields: Mapping[str, str]) -> str | None:
    """A field of a link that its layer and backend do not have, None where there is none (or they do not exist)."""
    layer = _LAYERS.get(fields.get("layer", LAYERS[0].name))
    backend = _BACKENDS.get(fields.get("backend", BACKENDS[0].name))
    if layer is None or backend is None:
        return None
    known = field_names(layer, backend)
    return next((name for name in fields if name not in known), None)


def show() -> dict[str, str]:
    """Draws the pickers where it is called; the fields as they stand, unchecked."""
    _set("preset", _matching_preset())
    st.selectbox(
        "Preset",
        [CUSTOM, *_PRESETS],
        format_func=lambda name: _PRESETS.get(name, name),
        key=_key("preset"),
        on_change=_take_preset,
        help="The scripts of the article, with their sizes.",
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
    offered = backends_for(layer)
    st.selectbox(
        "Backend",
        [backend.name for backend in offered],
        format_func=lambda name: _BACKENDS[name].title,
        key=_key("backend"),
        help=explain("backend") + " " + _BACKENDS[_get("backend")].description,
    )
    columns = st.columns(2)
    for index, size in enumerate(layer.sizes):
        columns[index % 2].text_input(size.title, key=_key(size.name), help=size.help)
    for flag in layer.flags:
        st.checkbox(flag.title, key=_key(flag.name), help=flag.help)
    with st.expander("Advanced"):
        for option in _BACKENDS[_get("backend")].options:
            if _key(option.name) not in st.session_state:
                _set(option.name, option.choices[0])
            st.selectbox(option.title, list(option.choices), key=_key(option.name), help=option.help)
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
    return fields_now()


def fields_now() -> dict[str, str]:
    """The fields as the pickers stand."""
    layer = _LAYERS[_get("layer")]
    fields = {"layer": layer.name, **{size.name: str(_get(size.name)) for size in layer.sizes}}
    fields |= {flag.name: "on" if _get(flag.name) else "off" for flag in layer.flags}
    for option in _BACKENDS[_get("backend")].options:
        fields[option.name] = str(st.session_state.get(_key(option.name), option.choices[0]))
    return fields | {name: str(_get(name)) for name in ("backend", "dtype", "passes", "steps", "seed")}


def backends_for(layer: Layer) -> tuple[Backend, ...]:
    """The backends that can carry the layer out."""
    return tuple(backend for backend in BACKENDS if applies(backend, layer))


def _matching_preset() -> str:
    try:
        workload = make(fields_now())
    except WorkloadError:
        return CUSTOM
    found = {
        name: from_preset(name, passes=workload.passes, dtype=workload.dtype, steps=workload.steps) for name in _PRESETS
    }
    exact = [name for name, preset in found.items() if preset == workload]
    same_but_backend = [name for name, preset in found.items() if without_backend(preset) == without_backend(workload)]
    return (exact or same_but_backend or [CUSTOM])[0]


def _take_preset() -> None:
    name = _get("preset")
    if name != CUSTOM:
        kept = {field: str(_get(field)) for field in ("dtype", "passes", "steps")}
        fields = to_fields(from_preset(name))
        load({**{f: ("on" if v else "off") if isinstance(v, bool) else str(v) for f, v in fields.items()}, **kept})


def _take_layer() -> None:
    kept = {field: str(_get(field)) for field in ("dtype", "passes", "steps", "seed")}
    layer, backend = _get("layer"), _get("backend")
    if backend not in [offered.name for offered in backends_for(_LAYERS[layer])]:
        backend = BACKENDS[0].name
    load({"layer": layer, "backend": backend, **kept})


def _key(name: str) -> str:
    return f"pick:{name}"


def _get(name: str) -> Any:
    return st.session_state[_key(name)]


def _set(name: str, value: object) -> None:
    st.session_state[_key(name)] = value
