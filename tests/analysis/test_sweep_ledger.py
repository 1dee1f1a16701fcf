"""The ledger read: a row a call, its outcome in words, why, and how many compiles there were by then."""

import dataclasses

import pytest

from core.analysis.guards import Reason
from core.analysis.ledger import GuardMiss
from core.analysis.recompiles import Compiled, LedgerRow, dynamic_entries, ledger
from tests.points import BATCH_8_NOT_4, DIMS, call, compiled, jit, limited, of, point

RECOMPILE = compiled("0/1", misses=(BATCH_8_NOT_4,), dynamic_dims=(DIMS[0],), disk_cache="miss", code=("0_1.py",))


def rows(*series, shared=True, axes=("batch",)):
    return ledger(series, axes, shared=shared, fixed={"seq": 64})


def outcome(name, found, **changes):
    (row,) = rows(of(name, point(name, 0, 8, found, **changes)))
    return row.kind, row.outcome, row.why


def test_a_row_holds_all_there_is_to_know_of_a_call():
    first = point("compile", 0, 4, call(compiled(), first_s=2.5))
    second = point("compile", 1, 8, call(RECOMPILE, cuda_graphs=2, graph_calls_s=(0.02,)), count=7)
    assert rows(of("compile", first, second))[1] == LedgerRow(
        run_id="compile-1",
        series="compile",
        title="torch.compile",
        call=2,
        index=1,
        round=0,
        values=(8,),
        sizes="batch 8",
        count=7,
        kind="recompiled",
        outcome="recompiled",
        served_by=("0/1",),
        reasons=(Reason("0/0", BATCH_8_NOT_4.words, "batch 8, and entry 0/0 was made for 4", True),),
        why="batch 8, and entry 0/0 was made for 4",
        opened=("batch",),
        now_dynamic="batch may now vary",
        forward=Compiled(("0/1",), 12, 0.25, 0.25, 0.75, 0.25, None, 1.5, "miss", ("0_1.py",)),
        backward=None,
        graph_breaks=(),
        cuda_graphs=2,
        graph_calls_s=(0.02,),
        jits=None,
        jit_s=None,
        first_call_s=2.0,
        compiles=2,
        recompiles=1,
        backward_compiles=0,
        jits_so_far=None,
    )


def test_compiled_recompiled_reused():
    found = rows(
        of(
            "compile",
            point("compile", 0, 4, call(compiled())),
            point("compile", 1, 8, call(RECOMPILE)),
            point("compile", 2, 16, call(served=("0/1",))),
        )
    )
    assert [(row.outcome, row.compiles, row.recompiles) for row in found] == [
        ("compiled", 1, 0),
        ("recompiled", 2, 1),
        ("reused 0/1", 2, 1),
    ]


def test_in_a_process_of_its_own_every_compile_is_the_first():
    points = [point("compile", index, 4 + index, call(compiled())) for index in range(3)]
    assert [(row.outcome, row.compiles, row.recompiles) for row in rows(of("compile", *points), shared=False)] == [
        ("compiled", 1, None),
        ("compiled", 2, None),
        ("compiled", 3, None),
    ]


def test_calls_count_in_the_order_they_were_made_and_rounds_apart():
    late = [
        point("compile", 0, 4, call(compiled()), round=1, order=5),
        point("compile", 0, 4, call(compiled()), order=1),
    ]
    assert [(row.round, row.call, row.compiles) for row in rows(of("compile", *late), shared=False)] == [
        (0, 1, 1),
        (1, 2, 2),
    ]


def test_graphs_of_one_call_are_added_up_and_unknown_stays_unknown():
    broken = call(
        compiled("0/0", disk_cache="hit"), compiled("1/0", disk_cache="miss", guard_count=None, stages_s={"total": 1.0})
    )
    (row,) = rows(of("compile", point("compile", 0, 4, broken)))
    assert row.forward == Compiled(("0/0", "1/0"), None, None, None, None, None, None, 2.5, "hit and miss", ())
    assert (row.compiles, row.recompiles) == (2, 0)


def test_forward_and_backward_stand_apart():
    both = call(compiled("0/0"), compiled("0/0", backward=True, guard_count=None))
    later = call(compiled("0/0", backward=True), served=("0/0",))
    found = rows(of("compile", point("compile", 0, 4, both), point("compile", 1, 8, later)))
    assert [(row.outcome, row.compiles, row.backward_compiles) for row in found] == [
        ("compiled", 1, 1),
        ("reused 0/0; compiled its backward pass", 1, 2),
    ]
    assert found[0].backward.entries == ("0/0",)
    assert found[1].forward is None


def test_a_recompile_without_a_reason_says_so():
    found = rows(of("compile", point("compile", 0, 4, call(compiled())), point("compile", 1, 8, call(compiled("0/1")))))
    assert [row.why for row in found] == [None, "Dynamo gave no reason"]


def test_past_the_limit_calls_run_eager():
    hit = call(limited(misses=(BATCH_8_NOT_4,)), served=(), ran_eager=True, limit="recompile_limit")
    before = call(served=(), ran_eager=True, limit="recompile_limit")
    assert outcome("compile_static", hit) == (
        "ran eager",
        "ran eager, limit hit",
        "batch 8, and entry 0/0 was made for 4",
    )
    assert outcome("compile_static", before)[1:] == (
        "ran eager, limit hit before",
        "the limit was hit before, and no entry serves this size",
    )
    assert outcome("compile", call(served=(), ran_eager=True)) == ("ran eager", "ran eager", None)


def test_ligers_jits_are_compiles_of_their_own_kind():
    found = rows(
        of(
            "liger",
            point("liger", 0, 4, call(jits=(jit(),), served=())),
            point("liger", 1, 8, call(jits=(), served=())),
            point("liger", 2, 9, call(jits=(jit(), jit(None)), served=())),
            point("liger", 3, 9, call(jits=None, served=())),
        )
    )
    assert [(row.kind, row.outcome, row.compiles, row.jits_so_far, row.jit_s) for row in found] == [
        ("triton jit", "Triton JIT, 0.17 s", 0, 1, 0.17),
        ("reused", "reused its Triton kernels", 0, 1, None),
        ("triton jit", "Triton JIT, 2 kernels, unknown seconds", 0, 3, None),
        ("unknown", "unknown: whether Triton compiled was not recorded", 0, None, None),
    ]


def test_what_compiles_over_liger_may_do_both():
    assert outcome("compile", call(compiled(), jits=(jit(),)))[:2] == ("compiled", "compiled; Triton JIT, 0.17 s")


def test_eager_has_nothing_to_compile():
    assert outcome("eager", call(served=())) == ("nothing to compile", "nothing to compile", None)


@pytest.mark.parametrize(
    ("found", "changes", "told"),
    [
        (None, {"failure": "Out of memory."}, ("failed", "failed: Out of memory.", None)),
        (None, {}, ("unknown", "unknown: the call was not recorded", None)),
        (call(compiled()), {"failure": "Out of memory."}, ("compiled", "compiled; failed: Out of memory.", None)),
        (call(served=()), {"failure": "Out of memory."}, ("failed", "failed: Out of memory.", None)),
        (
            call(limited(limit=None, failed="no backend"), served=()),
            {},
            ("failed", "failed: no backend", None),
        ),
        (
            Ellipsis,
            {},
            ("unknown", "unknown: which compiled code ran was not recorded", None),
        ),
    ],
)
def test_failures_and_what_is_unknown(found, changes, told):
    if found is Ellipsis:
        found = dataclasses.replace(call(), served_by=None)
    assert outcome("compile", found, **changes) == told


def test_an_unknown_call_has_no_count_and_stops_no_later_one():
    found = rows(
        of(
            "compile",
            point("compile", 0, 4, call(compiled())),
            point("compile", 1, 8, None, failure="It crashed."),
            point("compile", 2, 16, call(RECOMPILE)),
        )
    )
    assert [(row.compiles, row.recompiles, row.backward_compiles, row.jits_so_far) for row in found] == [
        (1, 0, 0, None),
        (None, None, None, None),
        (2, 1, 0, None),
    ]


def test_several_reasons_are_told_once_each():
    misses = (GuardMiss("0/1", "2 <= x.size()[0]"), BATCH_8_NOT_4, BATCH_8_NOT_4)
    (row,) = rows(of("compile", point("compile", 0, 1, call(compiled("0/2", misses=misses)))))
    assert row.why == (
        "batch 1: entry 0/1 serves 2 and more (size 1 is always compiled by itself); batch 8, and entry 0/0 was made for 4"
    )


def test_entries_with_open_sizes():
    failed = compiled("0/3", ok=False, dynamic_dims=(DIMS[0],))
    series = of("compile", point("compile", 0, 4, call(compiled(), RECOMPILE, failed)), point("compile", 1, 8, None))
    assert dynamic_entries(series) == {"0/1"}


def test_nothing_measured_is_no_rows():
    assert rows(of("compile")) == ()
