"""Sweeps from flat fields and back, the rows of a log, and every refusal in one sentence that says what to do."""

import pytest

from core.analysis.ledger import Call
from core.sweep import (
    COUNT_MAX,
    POINTS_MAX,
    holds,
    make_sweep,
    parse_traffic,
    plan,
    to_sweep_fields,
    traffic_axes,
    workload_at,
)
from core.sweep_order import Done, decode, encode, fingerprint, point_order
from core.workload import WorkloadError, layer_of, make
from tests.points import call, compiled, limited
from tests.sweeps import BATCHES, MAP, TRAFFIC

BOTH, BATCH = ("batch", "seq"), ("batch",)


@pytest.mark.parametrize(
    "fields",
    [
        BATCHES,
        {**BATCHES, "values": "4,8,4,1", "mode": "isolated", "cache": "warm", "mark": "on", "limit": ""},
        MAP,
        {**MAP, "values": "8,8,64", "dtype": "fp32", "passes": "fwd_bwd", "seed": "7"},
        TRAFFIC,
        {**TRAFFIC, "limit": "3", "steps": "4"},
        {"kind": "traffic", "layer": "linear", "rows": "8,128,5;16,128,7", "backends": "eager"},
        {"layer": "matmul_add", "axis": "columns", "values": "32,64", "rows": "48", "backends": "eager,compile"},
        {"layer": "matmul_add", "axis": "rows", "values": "32,64", "backends": "compile"},
    ],
)
def test_a_sweep_goes_into_a_link_and_comes_back(fields):
    sweep = make_sweep(fields)
    again = make_sweep(to_sweep_fields(sweep))
    assert (again, again.key) == (sweep, sweep.key)
    assert all(isinstance(value, str) for value in to_sweep_fields(sweep).values())


def test_what_is_left_out_is_the_kinds_own_default():
    sweep = make_sweep({"layer": "geglu_mlp", "axis": "batch", "values": "4 8;16"})
    assert (sweep.kind, sweep.backends, sweep.mode, sweep.cache) == ("sweep", ("eager", "compile"), "shared", "cold")
    assert (sweep.points, sweep.counts, sweep.mark_dynamic, sweep.recompile_limit) == (
        ((4,), (8,), (16,)),
        (),
        False,
        None,
    )
    assert (make_sweep(MAP).mode, make_sweep(MAP).rounds, make_sweep(MAP).base.steps) == ("isolated", 3, 5)
    assert make_sweep(MAP).points == ((8, 2048), (8, 11008), (64, 2048), (64, 11008))


def test_a_list_keeps_its_repeats_and_a_map_does_not():
    assert make_sweep({**BATCHES, "values": "4,8,4"}).points == ((4,), (8,), (4,))
    assert make_sweep({**MAP, "values": "8,64,8"}) == make_sweep(MAP)


def test_the_rows_of_a_matmul_are_a_size_and_no_traffic():
    sweep = make_sweep({"layer": "matmul_add", "axis": "columns", "values": "32,64", "rows": "48", "backends": "eager"})
    assert dict(sweep.base.sizes) == {"rows": 48, "inner": 64, "columns": 32}
    assert dict(workload_at(sweep, "eager", 1).sizes) == {"rows": 48, "inner": 64, "columns": 64}
    assert to_sweep_fields(sweep)["rows"] == "48"


@pytest.mark.parametrize(
    ("changes", "is_held"),
    [
        ({"batch": 16}, True),
        ({"batch": 16, "backend": "liger", "steps": 3, "seed": 7}, True),
        ({"batch": 17}, False),
        ({"batch": 16, "hidden": 1024}, False),
        ({"batch": 16, "dtype": "fp32"}, False),
        ({"batch": 16, "layer": "swiglu_mlp"}, False),
        ({"layer": "linear"}, False),
    ],
)
def test_a_sweep_holds_the_sizes_that_it_comes_to(changes, is_held):
    sweep = make_sweep({"layer": "geglu_mlp", "axis": "batch", "values": "4,16", "backends": "eager,compile"})
    assert holds(sweep, make({"layer": "geglu_mlp", "backend": "eager", **changes})) is is_held


def test_a_plan_goes_series_by_series_and_a_map_cell_by_cell():
    shared = plan(make_sweep({**BATCHES, "values": "4,8", "backends": "compile,eager"}))
    assert [(task.order, task.process, task.backend, task.index) for task in shared] == [
        (0, "compile", "compile", 0), (1, "compile", "compile", 1), (2, "eager", "eager", 0), (3, "eager", "eager", 1),
    ]  # fmt: skip
    cells = plan(make_sweep(MAP))
    assert {task.process for task in cells} == {"map"}
    assert [(task.index, task.round, task.backend) for task in cells[:4]] == [
        (0, 0, "eager"), (0, 0, "compile"), (0, 0, "liger"), (0, 1, "eager"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"kind": "race"}, "kind must be one of sweep, map, traffic; 'race' is not."),
        ({**BATCHES, "mark": "perhaps"}, "mark must be one of on, off; 'perhaps' is not."),
        ({**BATCHES, "mode": "alone"}, "mode must be one of shared, isolated; 'alone' is not."),
        ({**BATCHES, "cache": "hot"}, "cache must be one of cold, warm; 'hot' is not."),
        ({**BATCHES, "limit": "0"}, "The recompile limit must be a whole number from 1 to 1,000; '0' is not."),
        ({**BATCHES, "backends": " , "}, "No backend is chosen; choose at least one."),
        ({**BATCHES, "backends": "a,b,c,d,e,f,g"}, "7 backends are too many for one picture; choose at most 6."),
        ({**BATCHES, "axis": "width"}, "axis must be one of batch, seq, hidden, intermediate; 'width' is not."),
        ({**BATCHES, "values": ""}, "The list of sizes for batch is empty; give whole numbers, such as 4, 8, 16."),
        ({**BATCHES, "values": ",".join(["4"] * (POINTS_MAX + 1))}, "201 points are too many for one sweep; give at most 200."),
        ({**MAP, "backends": "compile"}, "A win map compares backends; choose at least two."),
        ({**MAP, "cache": "warm"}, "A win map stands on cold compiles; choose cache cold."),
        ({**MAP, "mode": "shared"}, "A win map compiles each size anew; choose mode isolated."),
        ({**MAP, "axis2": "batch"}, "The two axes of a win map are the same; choose two different sizes."),
        ({**TRAFFIC, "mode": "isolated"}, "Traffic is replayed by one process that lives through it; choose mode shared."),
        ({**TRAFFIC, "rows": " \n"}, "There is no traffic to replay; give rows of batch, seq, count, such as 8, 512, 120."),
        ({**TRAFFIC, "layer": "matmul_add", "backends": "eager"},
         "matmul + add has no batch, so no traffic can be replayed on it; choose another layer."),
    ],
)  # fmt: skip
def test_what_is_wrong_is_one_sentence(fields, sentence):
    with pytest.raises(WorkloadError) as caught:
        make_sweep(fields)
    assert str(caught.value) == sentence


@pytest.mark.parametrize("text", ["on", "ON", "off", "Off", True, False])
def test_marking_is_on_or_off(text):
    if isinstance(text, str):
        assert make_sweep({**BATCHES, "mark": text}).mark_dynamic == (text.lower() == "on")
    else:
        with pytest.raises(WorkloadError, match="mark must be one of on, off"):
            make_sweep({**BATCHES, "mark": text})


TWO_ROWS = (((8, 512), (16, 256)), (120, 60))


@pytest.mark.parametrize(
    "text",
    [
        "8,512,120;16,256,60",
        "8, 512, 120; 16, 256, 60;",
        "8,512,120\n16,256,60\n",
        "8,512,120\r\n\r\n16,256,60",
        "8;512;120\n16;256;60",
        "8; 512; 120;\n16; 256; 60;",
        "8\t512\t120\n16|256|60",
        "8,512,120; 16,256,60\n",
        "\ufeff8,512,120\n16,256,60",
        "batch,seq,count\n8,512,120\n16,256,60",
        "\ufeffBatch_Size;Seq_Len;Requests\n8;512;120\n16;256;60",
        "batch,seq,count;8,512,120;16,256,60",
        "count,seq,batch\n120,512,8\n60,256,16",
        '"tokens","hits","bs"\n512,120,8\n256,60,16',
    ],
)
def test_rows_come_by_lines_or_semicolons_in_the_headers_order(text):
    assert parse_traffic(text, BOTH) == TWO_ROWS


def test_several_rows_may_stand_on_each_line():
    assert parse_traffic("8,512,1; 8,384,2\n4,512,3; 8,77,4", BOTH) == (
        ((8, 512), (8, 384), (4, 512), (8, 77)), (1, 2, 3, 4),
    )  # fmt: skip


def test_one_row_may_have_semicolons_between_its_cells():
    assert parse_traffic("8;512;120", BOTH) == (((8, 512),), (120,))


def test_a_layer_without_a_sequence_takes_all_rows_of_a_call():
    assert traffic_axes(layer_of(make({"layer": "linear"}))) == BATCH
    assert parse_traffic("8,128,5\n16,7", BATCH) == (((1024,), (16,)), (5, 7))
    assert parse_traffic("count,batch\n5,8\n7,16", BATCH) == (((8,), (16,)), (5, 7))
    assert parse_traffic("count,seq,batch\n5,128,8", BATCH) == (((1024,),), (5,))


def test_neighbours_of_one_size_are_one_point():
    assert parse_traffic("8,512,5\n8,512,7\n4,512,1\n8,512,2", BOTH) == (((8, 512), (4, 512), (8, 512)), (12, 1, 2))


NO_COLUMNS = "does not name the columns; write batch, seq, count."


@pytest.mark.parametrize(
    ("text", "axes", "sentence"),
    [
        ("8,512\n", BOTH, "Row 1 ('8, 512') is not batch, seq, count: whole numbers."),
        ("8,512,120\n\n16,256", BOTH, "Row 3 ('16, 256') is not batch, seq, count: whole numbers."),
        ("count,batch,seq\n5,8,512\n7,8", BOTH, "Row 3 ('7, 8') is not count, batch, seq: whole numbers."),
        ("8,512,120;16,256", BOTH, "Row 2 ('16, 256') is not batch, seq, count: whole numbers."),
        ("8,512,120,\n" + "1," * 30, BOTH, "Row 2 ('1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1...') is not batch, seq, count: whole "
         "numbers."),
        ("batch,seq,count\n\n8,512,1\n8,x,1", BOTH, "Row 4: seq must be a whole number from 1 to 16,777,216; 'x' is not."),
        ("count,seq,batch\n5,512,0", BOTH, "Row 2: batch must be a whole number from 1 to 16,777,216; '0' is not."),
        ("8,512,1.5", BOTH, "Row 1: count must be a whole number from 1 to 1,000,000,000; '1.5' is not."),
        ("8,512,1000000000\n8,512,1", BOTH, "Row 2: the count with its neighbours' must be a whole number from 1 to "
         "1,000,000,000; '1000000001' is not."),
        ("16777216,2,1", BATCH, "Row 1: batch × seq must be a whole number from 1 to 16,777,216; '33554432' is not."),
        ("batch,seq,count\n8,512", BATCH, "Row 2 ('8, 512') is not batch, seq, count: whole numbers."),
        ("time,seq,count\n1,2,3", BOTH, f"The first line ('time, seq, count') {NO_COLUMNS}"),
        ("batch,seq,seq_len,count\n1,2,2,3", BOTH, f"The first line ('batch, seq, seq_len, count') {NO_COLUMNS}"),
        ("seq,count\n2,3", BATCH, f"The first line ('seq, count') {NO_COLUMNS}"),
        ("batch,count\n2,3", BOTH, f"The first line ('batch, count') {NO_COLUMNS}"),
        ("batch,seq\n2,3", BOTH, f"The first line ('batch, seq') {NO_COLUMNS}"),
        ("batch,seq,count", BOTH, "There is no traffic to replay; give rows of batch, seq, count, such as 8, 512, 120."),
        ("\ufeff", BOTH, "There is no traffic to replay; give rows of batch, seq, count, such as 8, 512, 120."),
    ],
)  # fmt: skip
def test_a_row_that_is_wrong_is_named_by_its_line(text, axes, sentence):
    with pytest.raises(WorkloadError) as caught:
        parse_traffic(text, axes)
    assert str(caught.value) == sentence


def test_a_quoted_table_is_read():
    assert parse_traffic('"batch","seq","count"\n"8","512","120"', BOTH) == (((8, 512),), (120,))


def test_as_many_calls_as_may_be_are_taken():
    assert parse_traffic(f"8,512,{COUNT_MAX - 1}\n8,512,1", BOTH) == (((8, 512),), (COUNT_MAX,))


def test_a_fingerprint_tells_outcomes_and_no_times():
    tried = (compiled("0/1"), compiled("0/1", backward=True), compiled("0/2", ok=False), limited("0/3"))
    assert fingerprint(call(*tried)) == "0/1 ok;0/1 backward ok;0/2 failed;0/3 limit"
    assert fingerprint(call(*tried, first_s=9.0)) == fingerprint(call(*tried, first_s=1.0))
    assert fingerprint(call(served=("0/0",))) == ""


def test_an_order_tells_what_its_own_process_did_before():
    sweep = make_sweep({**BATCHES, "values": "4,8,16,32", "backends": "eager,compile"})
    calls: dict[int, Call | None] = {3: call(), 4: call(compiled()), 5: None, 6: call(served=("0/0",)), 7: call()}
    order = point_order("abc", sweep, plan(sweep)[7], calls)
    assert order.done == (Done(4, "0/0 ok"), Done(5, None), Done(6, ""))
    assert decode(encode(order)) == order
    del calls[4]
    assert point_order("abc", sweep, plan(sweep)[6], calls).done == (Done(5, None),)
