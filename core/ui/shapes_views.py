"""The views of a sweep: findings in words, then the one view that was chosen, with its chart and its table."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import streamlit as st

from core.analysis.breakeven import UNKNOWN, break_even
from core.analysis.findings import busy, findings, outlasting
from core.analysis.padding import Padding, padding
from core.analysis.premium import Premium, premium
from core.analysis.sizes import KERNEL_TIME, STEP_TIME, kernel_changes, memory, role_times, whole_times
from core.analysis.stack import all_roles
from core.analysis.traffic import answer
from core.analysis.wording import counted
from core.charts import shapes as charts
from core.charts.recompiles import break_even_chart, compile_counts
from core.glossary import explain
from core.ui import chrome, shapes_code, shapes_ledger, shapes_link, shapes_lottery, shapes_tables, words
from core.ui.shapes_chart import draw, n_words, show_table, source
from core.ui.shapes_data import Shown, axis_words, fixed_sizes, has_repeats, point_words
from core.ui.shapes_map import who_wins
from core.ui.shapes_traffic import costs
from core.workload import layer_of

View = Callable[[Shown], None]
_FAILED_SHOWN = 6
_FINDINGS_SHOWN, _LUCK_AT = 5, 2
#: PyTorch's own, where the sweep sets none.
_LIMIT = 8
_ALL = "all"
_PROFILED = "Profiled steps of the point."
_BURST = "Unprofiled steps, back to back."
_WHISKERS = "points: medians; whiskers: the middle half, 25% to 75%"


def show(found: Shown) -> None:
    """Everything below the title: what was found, what failed, and the chosen view."""
    if not found.manifests:
        st.info("No point of this sweep is there yet.", icon=":material/pending:")
        return
    _findings(found)
    _failures(found)
    offered = _offered(found)
    chosen = _chosen(found, list(offered))
    offered[chosen][1](found)


def _findings(found: Shown) -> None:
    sweep, layer = found.sweep, layer_of(found.sweep.base)
    if sweep.kind == "map":
        return  # they depend on the time that is picked, and stand beside the map
    sentences = findings(
        found.series,
        sweep.axes,
        layer.roles,
        shared=sweep.mode == "shared",
        limit=sweep.recompile_limit or _LIMIT,
        width_name=layer.sizes[-1].name if layer.twins else None,
        fixed=fixed_sizes(sweep),
    )
    luck = shapes_lottery.told(found)
    sentences = (*sentences[:_LUCK_AT], luck, *sentences[_LUCK_AT:]) if luck else sentences
    with st.container(key="findings"):
        if sweep.kind == "traffic":
            st.markdown(f"**{words.plain(answer(found.series, sweep.axes, len(sweep.points)).sentence)}**")
        for index, sentence in enumerate(sentences[:_FINDINGS_SHOWN], 1):
            st.markdown(f"**{index}.** {words.plain(sentence)}")
        if len(sentences) > _FINDINGS_SHOWN:
            with st.expander(counted(len(sentences) - _FINDINGS_SHOWN, "more finding")):
                for index, sentence in enumerate(sentences[_FINDINGS_SHOWN:], _FINDINGS_SHOWN + 1):
                    st.markdown(f"**{index}.** {words.plain(sentence)}")


def _failures(found: Shown) -> None:
    """Every point that has no result, by name, with its sentence."""
    failed = [(one, point) for one in found.series for point in one.points if point.failure is not None]
    if not failed:
        return
    with st.expander(f"{counted(len(failed), 'run')} failed", icon=":material/error:", expanded=len(failed) <= 2):
        for one, point in failed[:_FAILED_SHOWN]:
            at = point_words(found.sweep, point.values)
            st.markdown(words.plain(f"{one.title} at {at} (call {point.index + 1}): {point.failure}"))
        if len(failed) > _FAILED_SHOWN:
            st.caption(f"And {len(failed) - _FAILED_SHOWN} more; the ledger names them all.")


def _offered(found: Shown) -> Mapping[str, tuple[str, View]]:
    """The views that this sweep has something for, by their name in the link: title and view."""
    views: dict[str, tuple[str, View]] = {}
    if found.sweep.kind == "map":
        views["map"] = ("Who wins", who_wins)
    if found.sweep.kind == "traffic":
        views["costs"] = ("What it costs", costs)
    views["recompiles"] = ("Ledger" if found.sweep.kind == "map" else "Recompiles", _recompiles)
    if found.sweep.kind != "map":
        views["pays"] = ("Break-even", _break_even)
        views["kernels"] = ("Kernel time", _kernel_time)
        views["step"] = ("Step time", _step_time)
        views["memory"] = ("Memory", _memory)
        if _premiums(found):
            views["premium"] = ("Open sizes", _premium)
        if _paddings(found):
            views["padding"] = ("Padding", _padding)
    if shapes_lottery.drawn(found):
        views["lottery"] = ("Compile lottery", shapes_lottery.show)
    return views | {"entries": ("Guards, code", shapes_code.show)}


def _chosen(found: Shown, names: list[str]) -> str:
    key = f"shapes:view:{found.sweep.kind}"
    wanted = shapes_link.read().get(shapes_link.VIEW)
    if shapes_link.look_arrived(shapes_link.VIEW) or st.session_state.get(key) not in names:
        st.session_state[key] = wanted if wanted in names else names[0]
    titles = _offered(found)
    st.segmented_control(
        "View", names, format_func=lambda name: titles[name][0], key=key, required=True, label_visibility="collapsed",
        help="What is looked at; it stands in the link.",
    )  # fmt: skip
    chosen: str = st.session_state[key]
    if wanted is not None or chosen != names[0]:
        shapes_link.write_look(shapes_link.VIEW, chosen)
    return chosen


def _recompiles(found: Shown) -> None:
    rows = shapes_ledger.rows(found)
    if found.sweep.kind != "map":
        apart = "lines of equal counts stand a little apart" if len(found.series) > 1 else ""
        st.subheader(
            "Compiles, call by call", anchor="recompiles",
            help=f"{explain('recompile')} {explain('guard')} {explain('dynamic shapes')} {explain('recompile limit')}",
        )  # fmt: skip
        counted_how = "; ".join(part for part in ("compiles counted at each call, n 1", apart) if part)
        figure = compile_counts(rows, source=source(found, counted_how), dark=chrome.is_dark())
        draw(
            found,
            figure,
            name="recompiles",
            alt="Compiles so far against the number of the call",
            table=lambda: shapes_tables.counts(rows),
            note=f"Counts are whole numbers: {apart}." if apart else "",
        )
    titles = {one.name: one.title for one in found.series}
    backends = st.segmented_control(
        "Backends in the ledger", list(titles), format_func=titles.__getitem__, selection_mode="multi",
        default=list(titles), key=f"shapes:ledger:backends:{found.entry.head.id}", help=explain("backend"),
    )  # fmt: skip
    shapes_ledger.show(found, rows, backends)


def _break_even(found: Shown) -> None:
    st.subheader("When does compiling pay back?", anchor="pays", help=explain("break-even"))
    _say_of_steps(found)
    lists = break_even(found.series, found.sweep.axes)
    if not lists:
        st.info("Eager is not in this sweep, and it is what the others are held against; add it and run again.")
        return
    for one in lists:
        st.markdown(f"**{words.plain(one.title)}** against {words.plain(one.against_title)}: {words.plain(one.words)}.")
    table, columns = shapes_tables.pay_back([row for one in lists for row in one.points])
    if all(one.verdict == UNKNOWN for one in lists):
        st.info(
            "There is no chart: of no backend enough calls can be held against Eager's. The table says why, size by size."
        )
    else:
        n = n_words(point.step_us.n for one in found.series for point in one.points if point.step_us is not None)
        how = f"median step, unprofiled, {n} a size; first calls n 1; shaded: the steps' quartiles, 25% to 75%"
        figure = break_even_chart(lists, source=source(found, how), dark=chrome.is_dark())
        draw(found, figure, name="break-even", alt="Seconds against the number of calls", table=lambda: table, opens="")
    show_table(table, columns, name="break-even", found=found)


def _kernel_time(found: Shown) -> None:
    roles = all_roles(layer_of(found.sweep.base).roles)
    on_gpu = found.on_gpu
    st.subheader(
        "Kernel time against size" if on_gpu else "Operator time against size", anchor="kernels",
        help=f"{explain('kernel time') if on_gpu else explain('self time')} {explain('role')}",
    )  # fmt: skip
    axes, axis = found.sweep.axes, axis_words(found.sweep)
    whole, parts = whole_times(found.series, axes, KERNEL_TIME), role_times(found.series, axes, roles)
    if not whole:
        st.info("No kernel time is known of this sweep: none of its points holds a kernel.")
        return
    titles = {_ALL: "All kernels" if on_gpu else "All operators"} | {
        one.name: one.title for one in roles if any(part.role == one.name for part in parts)
    }
    which = st.segmented_control(
        "Time of", list(titles), format_func=titles.__getitem__, default=_ALL, required=True,
        key=f"shapes:role:{found.sweep.base.layer}", help=f"{explain('role')} Fusing changes what is no matrix product.",
    )  # fmt: skip
    rows = whole if which == _ALL else tuple(part for part in parts if part.role == which)
    of_step = "kernel time a step" if on_gpu else "operators' own time a step"
    what = of_step if which == _ALL else f"{titles[which]}, {of_step}"
    dark = chrome.is_dark()
    n = f"profiled, {n_words(row.time_us.n for row in rows)} steps a point"
    figure = charts.against_size(rows, axis=axis, what=what, source=source(found, f"{n}; {_WHISKERS}"), dark=dark)
    table, columns = shapes_tables.times(rows, what=of_step.capitalize(), how=_PROFILED)
    draw(
        found,
        figure,
        name=f"kernel-time-{which}",
        alt="Time of the kernels of a step against size",
        table=lambda: table,
        note=_between_repeats(found),
    )
    if parts and which == _ALL:
        stacks = charts.role_stacks(parts, roles, axis=axis, source=source(found, f"medians, {n}"), dark=dark)
        own, _ = shapes_tables.times(parts, what=of_step.capitalize(), how=_PROFILED)
        draw(found, stacks, name="roles", alt="What each role takes of a step, point by point", table=lambda: own)
    changed = kernel_changes(found.series, axes, roles)
    if changed:
        st.subheader("Where the kernels change", anchor="changes", help=f"{explain('gemm')} {explain('epilogue')}")
        changes, change_columns = shapes_tables.changes(changed)
        show_table(changes, change_columns, name="changes", found=found)
    show_table(table, columns, name=f"kernel-time-{which}", found=found)


def _say_of_steps(found: Shown) -> None:
    """Beside every step time: where the host was busy, it is no backend's; and where the load made it longer."""
    told = busy(found.series)
    if told is not None:
        st.warning(words.plain(told), icon=":material/group_work:")
    longer = outlasting(found.series)
    if longer is not None:
        st.caption(words.plain(longer))


def _step_time(found: Shown) -> None:
    st.subheader("Step time against size", anchor="step", help=f"{explain('step time')} {explain('unprofiled')}")
    _say_of_steps(found)
    rows = whole_times(found.series, found.sweep.axes, STEP_TIME)
    if not rows:
        st.info("No step time is known of this sweep.")
        return
    axis, dark = axis_words(found.sweep), chrome.is_dark()
    how = f"unprofiled, {n_words(row.time_us.n for row in rows)} steps a point; {_WHISKERS}"
    figure = charts.against_size(rows, axis=axis, what="step", source=source(found, how), dark=dark)
    table, columns = shapes_tables.times(rows, what="Step", how=_BURST)
    note = _between_repeats(found)
    draw(found, figure, name="step-time", alt="Step time against size", table=lambda: table, note=note)
    show_table(table, columns, name="step-time", found=found)


def _memory(found: Shown) -> None:
    st.subheader("Peak memory against size", anchor="memory", help=explain("peak memory"))
    rows = memory(found.series, found.sweep.axes)
    if not rows:
        st.info("Peak memory is unknown: it is measured on a GPU alone.")
        return
    apart = all(row.first_call_bytes is not None for row in rows)
    of = "of the steps, without the first calls" if apart else "the highest of the whole point, compiling included"
    how = f"peak memory, {of}; n 1 a point"
    figure = charts.peak_memory(rows, axis=axis_words(found.sweep), source=source(found, how), dark=chrome.is_dark())
    table, columns = shapes_tables.memory(rows)
    note = _between_repeats(found)
    draw(found, figure, name="memory", alt="Peak memory against size", table=lambda: table, note=note)
    show_table(table, columns, name="memory", found=found)


def _between_repeats(found: Shown) -> str:
    return "Where a size comes again, the line runs midway between its points." if has_repeats(found.sweep) else ""


def _premiums(found: Shown) -> tuple[Premium, ...]:
    """Where at least one side has a time."""
    shared = found.sweep.mode == "shared"
    rows = premium(found.series, found.sweep.axes, layer_of(found.sweep.base).roles, shared=shared)
    return tuple(row for row in rows if row.dynamic_us is not None or row.static_us is not None)


def _premium(found: Shown) -> None:
    st.subheader("What leaving sizes open costs", anchor="premium", help=explain("specialisation premium"))
    rows = _premiums(found)
    n = n_words(one.n for row in rows for one in (row.dynamic_us, row.static_us) if one is not None)
    how = f"medians, profiled, {n} steps a point; hollow: no difference beyond the noise"
    figure = charts.premium_chart(rows, axis=axis_words(found.sweep), source=source(found, how), dark=chrome.is_dark())
    table, columns = shapes_tables.premium(rows)
    draw(found, figure, name="premium", alt="Time of open sizes over static ones", table=lambda: table)
    show_table(table, columns, name="premium", found=found)


def _paddings(found: Shown) -> tuple[Padding, ...]:
    """Empty where the width stays the same: there is then nothing to hold it against."""
    layer, sweep = layer_of(found.sweep.base), found.sweep
    role = next((one for one in layer.roles if not one.matmul), None)
    # The last size of a layer is the length of its rows.
    width = layer.sizes[-1].name
    if role is None or not layer.twins or width not in sweep.axes:
        return ()
    return padding(found.series, sweep.axes, role, width_name=width)


def _padding(found: Shown) -> None:
    st.subheader("Liger's padded rows", anchor="padding", help=f"{explain('padding')} {explain('constexpr')}")
    rows = _paddings(found)
    n = n_words(one.n for row in rows for one in (row.liger_us, row.against_us) if one is not None)
    how = f"medians, profiled, {n} steps a point; idle lanes computed from width and block"
    figure = charts.padding_chart(rows, source=source(found, how), dark=chrome.is_dark())
    table, columns = shapes_tables.padding(rows)
    draw(found, figure, name="padding", alt="Liger's kernel beside a generated one, against width", table=lambda: table)
    show_table(table, columns, name="padding", found=found)
