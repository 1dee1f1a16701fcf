"""launches: the call, and from the call to the kernel, on tiny traces and on real ones."""

from pathlib import Path

import pytest

from core.analysis.launches import GraphLaunches, Launches, launches
from core.analysis.spread import spread
from core.trace import read_trace
from tests.trace.build import annotation, copy, kernel, launch, op, trace, two_steps

SAMPLES = Path(__file__).resolve().parents[2].parent / "shared" / "h200_samples"


def test_two_steps_of_an_eager_layer():
    # Each kernel is launched before the work ahead of it has ended.
    assert launches(read_trace(trace(*two_steps()))) == Launches(
        kernels=4,
        call_us=spread([5, 5, 5, 5]),
        idle_us=None,
        queued_us=spread([15, 13, 15, 13]),
        graphs=None,
        unlinked=0,
        early=0,
    )


def test_a_kernel_finds_the_gpu_idle_where_all_its_work_had_ended_before_the_call():
    tables = read_trace(
        trace(
            launch(1, 0, 4), kernel("first", 1, 7, 10),
            launch(2, 17, 3), kernel("right after the end", 2, 25, 10),
            launch(3, 30, 2), kernel("behind it", 3, 36, 2),
            launch(4, 50, None), kernel("on another stream, beside a copy", 4, 56, 1, stream=8),
            launch(5, 60, 1), kernel("on another device", 5, 63, 1, device=1),
            launch(6, 80, 1), kernel("two clocks", 6, 79, 1),
            copy(None, 45, 6), kernel("no launch", 99, 90, 1),
        )
    )  # fmt: skip
    assert launches(tables) == Launches(
        kernels=7,
        call_us=spread([4, 3, 2, 1, 1]),
        idle_us=spread([7, 8, 3]),
        queued_us=spread([6, 6]),
        graphs=None,
        unlinked=1,
        early=1,
    )


def test_only_kernels_of_steps_count_where_there_are_steps():
    events = [launch(1, 0, 1), kernel("warm-up", 1, 5, 1), annotation("ProfilerStep#3", 10, 20), launch(2, 12, 2)]
    found = launches(read_trace(trace(*events, kernel("own", 2, 15, 1), kernel("no launch", 9, 25, 1))))
    assert (found.kernels, found.call_us, found.idle_us, found.unlinked) == (2, spread([2]), spread([3]), 1)


def test_one_graph_launch_is_one_call_for_many_kernels():
    graph = {"name": "cudaGraphLaunch"}
    tables = read_trace(
        trace(
            launch(1, 0, 4, **graph), *(kernel("k", 1, 10 + 5 * i, 5) for i in range(3)),
            launch(2, 20, 6, **graph), *(kernel("k", 2, 27 + 5 * i, 5) for i in range(3)),
            launch(3, 50, 1), kernel("plain", 3, 54, 1),
        )
    )  # fmt: skip
    assert launches(tables) == Launches(
        kernels=7,
        call_us=spread([1]),
        idle_us=spread([4]),
        queued_us=None,
        graphs=GraphLaunches(2, 6, call_us=spread([4, 6]), idle_us=spread([10]), queued_us=spread([7])),
        unlinked=0,
        early=0,
    )


def test_no_kernels():
    assert launches(read_trace(trace(op("a", 1, 1)))) == Launches(0, None, None, None, None, 0, 0)


@pytest.mark.skipif(not SAMPLES.is_dir(), reason="the shared sample traces are not here")
@pytest.mark.parametrize(
    ("name", "kernels", "calls", "graph_launches"),
    [
        ("linear_eager", 20, 20, None),
        ("mlp_eager", 100, 100, None),
        ("mlp_compiled", 80, 80, None),
        ("mlp_reduce_overhead", 50, 10, 10),
    ],
)
def test_real_launches(name, kernels, calls, graph_launches):
    found = launches(read_trace(SAMPLES / f"{name}.json.gz"))
    assert (found.kernels, found.call_us.n) == (kernels, calls)
    assert sum(one.n for one in (found.idle_us, found.queued_us) if one) == calls - found.early
    assert (found.graphs.launches if found.graphs else None) == graph_launches
    assert 2 < found.call_us.median < 30
    assert found.unlinked == 0
