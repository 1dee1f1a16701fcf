"""read_trace: whole rows of tiny traces, times, links, steps, odd values."""

import gzip
import json

import pytest

from core.trace import TraceError, codes, column, event_args, kind_mask, read_trace
from tests.trace.build import CPU, annotation, copy, event, kernel, launch, op, trace, two_steps

ABSENT = dict.fromkeys(
    ("correlation", "device", "stream", "grid", "block", "registers", "shared_memory_bytes", "input_dims", "input_strides",
     "step", "launch", "op")
)  # fmt: skip


def rows(*events, **top):
    return read_trace(trace(*events, **top)).events.to_pylist()


def test_whole_rows_of_an_op_its_launch_and_its_kernel():
    found = rows(
        kernel("k", 5, 20.5, 3.25, stream=9, device=1, grid=(2, 3, 4)),
        annotation("ProfilerStep#7", 9, 20),
        op("aten::mm", 10, 8, dims=[[8, 4], [4, 2]], strides=[[4, 1], [1, 4]]),
        launch(5, 12, 2.001),
    )
    assert found == [
        {**ABSENT, "start_ns": 0, "dur_ns": 20_000, "name": "ProfilerStep#7", "kind": "annotation",
         "category": "user_annotation", "track": 0, "depth": 0, "parent": None, "step": 7, "source": 1},
        {**ABSENT, "start_ns": 1000, "dur_ns": 8000, "name": "aten::mm", "kind": "op", "category": "cpu_op", "track": 0,
         "depth": 1, "parent": 0, "input_dims": "[8, 4] [4, 2]", "input_strides": "[4, 1] [1, 4]", "step": 7, "source": 2},
        {**ABSENT, "start_ns": 3000, "dur_ns": 2001, "name": "cudaLaunchKernel", "kind": "launch",
         "category": "cuda_runtime", "track": 0, "depth": 2, "parent": 1, "correlation": 5, "step": 7, "op": 1,
         "source": 3},
        {**ABSENT, "start_ns": 11_500, "dur_ns": 3250, "name": "k", "kind": "kernel", "category": "kernel", "track": 1,
         "depth": 0, "parent": None, "correlation": 5, "device": 1, "stream": 9, "grid": "2,3,4", "block": "128,1,1",
         "registers": 32, "shared_memory_bytes": 1024, "step": 7, "launch": 2, "op": 1, "source": 0},
    ]  # fmt: skip


def test_tracks_carry_the_names_of_threads_and_processes():
    names = [
        {"ph": "M", "name": "process_name", "pid": CPU, "tid": 0, "args": {"name": "python"}},
        {"ph": "M", "name": "thread_name", "pid": CPU, "tid": 1, "args": {"name": "main"}},
    ]
    tables = read_trace(
        trace(*names, op("a", 1, 1), op("b", 2, 1, tid=2), kernel("k", 1, 3, 1), event("Trace", "Trace", 4, 1, pid="S"))
    )
    assert tables.tracks.to_pylist() == [
        {"track": 0, "pid": "100", "tid": "1", "label": "main", "role": "cpu"},
        {"track": 1, "pid": "100", "tid": "2", "label": "python", "role": "cpu"},
        {"track": 2, "pid": "0", "tid": "7", "label": "0/7", "role": "gpu"},
        {"track": 3, "pid": "S", "tid": "1", "label": "S/1", "role": "other"},
    ]


def test_meta():
    meta = read_trace(
        trace(op("a", 5.25, 1), {"ph": "i", "ts": 1}, baseTimeNanoseconds=17, deviceProperties=[{"id": 0, "name": "X"}])
    ).meta
    assert meta == {
        "base_time_ns": 17,
        "devices": [{"id": 0, "name": "X"}],
        "start_us": "5.250",
        "n_events_in_file": 2,
        "distributed": {},
        "notes": [],
    }


def test_devices_of_old_files():
    assert read_trace(trace(op("a", 1, 1), computeProperties=[{"id": 3}])).meta["devices"] == [{"id": 3}]


@pytest.mark.parametrize("pack", [bytes, gzip.compress, lambda text: b"\xef\xbb\xbf" + text])
def test_plain_gzip_and_byte_order_mark(pack, tmp_path):
    content = pack(trace(op("a", 1, 1)))
    path = tmp_path / "trace.json"
    path.write_bytes(content)
    assert read_trace(path).events == read_trace(content).events


def test_bare_list():
    assert [row["name"] for row in read_trace(json.dumps([op("a", 1, 1)]).encode()).events.to_pylist()] == ["a"]


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        (["1712195495405752.797", "1712195495405753.001"], [0, 204]),
        (['"1712195495405752.797"', '"1712195495405753.001"'], [0, 204]),
        (["1712195495405752", "1712195495405753"], [0, 1000]),
        (["5240368147816.745", "5240368147816.746"], [0, 1]),
        (["9007199254740993.001", "1"], [0]),
        (["0.0005", "0.0024"], [0, 2]),
        (["-1.5", "2"], [0, 3500]),
    ],
)
@pytest.mark.parametrize("strict", [True, False])
def test_times_are_exact_to_the_nanosecond(times, expected, strict):
    odd = "1" if strict else "NaN"
    events = ",".join(f'{{"ph":"X","name":"a","ts":{ts},"dur":0.001,"x":{odd}}}' for ts in times)
    tables = read_trace(f"[{events}]".encode())
    assert column(tables.events, "start_ns").tolist() == expected


def test_absolute_start_of_a_file_with_absolute_times():
    assert read_trace(b'[{"ph":"X","name":"a","ts":1712195495405752.797,"dur":1}]').meta["start_us"] == (
        "1712195495405752.797"
    )


@pytest.mark.parametrize("dur", ["null", "-1", '"soon"', "NaN", "Infinity", "[]", "true"])
def test_unusable_durations_are_null(dur):
    tables = read_trace(f'[{{"ph":"X","name":"a","ts":1,"dur":{dur}}}]'.encode())
    assert tables.events["dur_ns"].to_pylist() == [None]
    assert tables.meta["notes"][-1] == "1 event without a usable duration: counted, but left out of all times."


def test_an_event_without_a_time_is_left_out_with_a_note():
    tables = read_trace(b'[{"ph":"X","name":"a","ts":null},{"ph":"X","name":"b","ts":1,"dur":1}]')
    assert tables.events["name"].to_pylist() == ["b"]
    assert tables.meta["notes"] == ["1 event without a readable start time: left out."]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (b'"C:\\qt"', "C:\\qt"),
        (b'"C:\\\\qt"', "C:\\qt"),
        (b'"a\tb"', "a\tb"),
        (b'"\xff"', "�"),
        (b'"\\u00e9"', "é"),
        (b'"\\ud800"', "?"),
        (b'"\\uzz"', "\\uzz"),
        (b"null", ""),
        (b"7", "7"),
    ],
)
def test_odd_names(text, name):
    assert read_trace(b'[{"ph":"X","ts":1,"dur":1,"name":' + text + b"}]").events["name"].to_pylist() == [name]


def test_repair_is_told():
    notes = read_trace(b'{"traceEvents":[{"ph":"X","ts":1,"dur":1,"name":"a","args":{"x":NaN}}]}').meta["notes"]
    assert notes == ["The file is not strict JSON (or has fields of odd types); it was repaired while reading."]


@pytest.mark.parametrize("args", ["[]", "3", '"x"', "null"])
def test_odd_args(args):
    assert read_trace(f'[{{"ph":"X","ts":1,"dur":1,"name":"a","args":{args}}}]'.encode()).events.num_rows == 1


@pytest.mark.parametrize(
    ("value", "expected"), [(5, 5), ("5", 5), (5.0, 5), (2**70, None), ("x", None), (True, None), ([], None)]
)
def test_correlation_of_odd_types(value, expected):
    assert rows(launch(value, 1, 1))[0]["correlation"] == expected


def test_old_files():
    found = rows(
        event("ProfilerStep#2", "Operator", 1, 20, tid="1"),
        event("aten::mm", "Operator", 2, 9, tid="1"),
        event("cudaLaunchKernel", "Runtime", 3, 1, tid="1", correlation=4),
        event("k", "Kernel", 6, 2, pid=0, tid="stream 7", correlation=4),
        event("Memset (Device)", "Memset", 9, 2, pid=0, tid="stream 7"),
    )
    assert [(row["kind"], row["device"], row["stream"], row["launch"], row["op"], row["step"]) for row in found] == [
        ("annotation", None, None, None, None, 2),
        ("op", None, None, None, None, 2),
        ("launch", None, None, None, 1, 2),
        ("kernel", 0, 7, 2, 1, 2),
        ("memset", 0, 7, None, None, None),
    ]


@pytest.mark.parametrize("category", ["cuda_runtime", "cuda_driver", "hip_runtime", "Runtime"])
def test_every_runtime_call_is_a_launch(category):
    assert rows(event("x", category, 1, 1))[0]["kind"] == "launch"


@pytest.mark.parametrize("category", ["cuda_sync", "overhead", "Trace", None])
def test_what_is_neither_op_nor_gpu_work(category):
    assert rows(event("x", category, 1, 1, pid=0, tid=7, stream=7))[0]["kind"] == "other"


def test_a_triton_op_with_a_stream_is_no_gpu_work():
    (row,) = rows(event("triton_poi_fused_0", "cpu_op", 1, 1, stream=7, grid="grid(8,)", device=0))
    assert (row["kind"], row["device"], row["stream"], row["grid"]) == ("op", None, None, None)


def test_the_innermost_op_of_the_same_thread_owns_the_launch():
    tables = read_trace(
        trace(
            op("outer", 0, 100),
            op("first", 10, 10),
            op("second", 30, 20),
            op("other thread", 30, 20, tid=2),
            annotation("inside", 34, 8),
            launch(1, 35, 5),
            launch(2, 60, 5),
            launch(3, 120, 5),
            kernel("a", 1, 200, 1),
            kernel("b", 2, 210, 1),
            kernel("c", 3, 220, 1),
            kernel("d", 4, 230, 1),
        )
    )
    names = tables.events["name"].to_pylist()
    is_kernel = kind_mask(tables.events, "kernel")
    owners = [names[at] if at >= 0 else None for at in column(tables.events, "op")[is_kernel].tolist()]
    assert owners == ["second", "outer", None, None]
    assert (column(tables.events, "launch")[is_kernel] >= 0).tolist() == [True, True, True, False]


def test_a_launch_that_sticks_out_of_its_op_does_not_end_it():
    found = rows(op("outer", 0, 50), op("mm", 10, 10), launch(1, 15, 8), launch(2, 16, 2))
    assert [(row["name"], row["parent"], row["op"], row["depth"]) for row in found] == [
        ("outer", None, None, 0),
        ("mm", 0, None, 1),
        ("cudaLaunchKernel", 0, 0, 1),
        ("cudaLaunchKernel", 1, 1, 2),
    ]


def test_one_graph_launch_owns_many_kernels():
    found = rows(
        op("replay", 0, 9), launch(1, 1, 2, name="cudaGraphLaunch"), *(kernel("k", 1, 5 + i, 1) for i in range(3))
    )
    assert [row["launch"] for row in found if row["kind"] == "kernel"] == [1, 1, 1]


def test_a_kernel_may_start_before_its_launch():
    found = rows(kernel("k", 1, 5, 1), op("mm", 6, 5), launch(1, 7, 1))
    assert (found[0]["name"], found[0]["launch"], found[0]["op"]) == ("k", 2, 1)


def test_steps():
    tables = read_trace(trace(*two_steps(), op("after", 300, 1), kernel("no launch", 99, 110, 1), copy(98, 400, 1)))
    step = column(tables.events, "step")
    name_codes, names = codes(tables.events, "name")
    of_name = {name: step[name_codes == code].tolist() for code, name in enumerate(names)}
    assert of_name["aten::mul"] == [0, 1]
    assert of_name["void at::native::vectorized_elementwise_kernel<4>"] == [0, 1]
    assert of_name["after"] == of_name["no launch"] == of_name["Memcpy DtoD"] == [-1]


def test_own_step_names_count_only_without_the_profiler_s():
    own = rows(annotation("step_4", 1, 9), op("a", 2, 1))
    both = rows(annotation("ProfilerStep#1", 0, 20), annotation("step_4", 1, 9), op("a", 2, 1))
    assert [row["step"] for row in own] == [4, 4]
    assert [row["step"] for row in both] == [1, 1, 1]


def test_rows_are_sorted_by_start_then_longest_then_source():
    found = rows(op("short", 5, 1), op("long", 5, 9), op("first", 1, 1), op("long too", 5, 9))
    assert [row["name"] for row in found] == ["first", "long", "long too", "short"]


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ([[3072], [32768, 768], [], []], "[3072] [32768, 768] [] []"),
        ([[[64, 128], [2]], []], "[[64, 128], [2]] []"),
        ([[-1, 0]], "[-1, 0]"),
        ([], None),
        ([8, 4], None),
        ("[[8, 4]]", None),
        ([["8"]], None),
        ([[1.5]], None),
        ({"a": 1}, None),
        (None, None),
    ],
)
@pytest.mark.parametrize("strict", [True, False])
def test_input_shapes_and_strides(written, read, strict):
    found = event("a", "cpu_op", 1, 1, **{"Input Dims": written, "Input Strides": written})
    content = trace(found, op("b", 5, 1))
    if not strict:  # a bad escape sends the file to the tolerant decoder
        content = content.replace(b'"b"', b'"\\q"')
    rows = read_trace(content).events.to_pylist()
    assert [(row["input_dims"], row["input_strides"]) for row in rows] == [(read, read), (None, None)]


def test_input_shapes_with_nonsense_in_a_file_that_is_not_strict():
    tables = read_trace(
        b'[{"ph":"X","cat":"cpu_op","name":"a","ts":1,"dur":1,"args":{"Input Dims":[[NaN, "\\ud800"]]}}]'
    )
    assert tables.events["input_dims"].to_pylist() == [None]


def test_input_shapes_by_their_old_name_and_of_operators_alone():
    found = rows(
        event("a", "cpu_op", 1, 1, **{"Input dims": [[2]]}),
        event("b", "user_annotation", 3, 1, **{"Input Dims": [[2]]}),
    )
    assert [row["input_dims"] for row in found] == ["[2]", None]


def test_event_args_gives_the_raw_event(tmp_path):
    path = tmp_path / "trace.json.gz"
    path.write_bytes(gzip.compress(trace(op("a", 1, 1), kernel("k", 5, 2, 1))))
    source = read_trace(path).events["source"].to_pylist()[1]
    assert event_args(path, source) == kernel("k", 5, 2, 1)
    assert event_args(b'[{"ph":"X","ts":NaN,"name":"\\q"}]', 0)["name"] == "\\q"
    with pytest.raises(TraceError, match="no event number 9"):
        event_args(path, 9)
