"""step_signatures and settled: what a step holds, and what is said when one differs."""

import pytest

from core.analysis.steps import settled, step_signatures
from core.trace import read_trace
from tests.trace.build import annotation, kernel, op, trace, two_steps

GEMM, MUL = "ampere_sgemm_128x64_tn", "void at::native::vectorized_elementwise_kernel<4>"


def test_signatures_name_the_kernels_in_order():
    assert step_signatures(read_trace(trace(*two_steps()))) == {0: (GEMM, MUL), 1: (GEMM, MUL)}


def test_signatures_of_a_cpu_run_name_the_leaf_ops():
    cpu = [event for event in two_steps() if event["cat"] not in ("kernel", "gpu_memset")]
    assert step_signatures(read_trace(trace(*cpu))) == dict.fromkeys((0, 1), ("aten::t", "aten::addmm", "aten::mul"))


def third(*kernels):
    """A third step, after two whole ones, with these kernels."""
    names = {GEMM: 90, MUL: 91, "new": 92}
    launches = [
        {**event, "args": {"correlation": names[name]}}
        for name, event in zip(kernels, [op("x", 310 + 5 * i, 4) for i in range(len(kernels))], strict=True)
    ]
    for event in launches:
        event["cat"] = "cuda_runtime"
    work = [kernel(name, names[name], 330 + 5 * i, 3) for i, name in enumerate(kernels)]
    return read_trace(trace(*two_steps(), annotation("ProfilerStep#3", 300, 80), *launches, *work))


@pytest.mark.parametrize(
    ("kernels", "expected"),
    [
        ((GEMM, MUL), (True, "All 3 steps hold the same 2 kernels.")),
        ((MUL, GEMM), (True, "All 3 steps hold the same 2 kernels.")),
        ((GEMM,), (False, f"Step 3 holds 1 kernel where the others hold 2: {MUL} is missing.")),
        ((GEMM, MUL, "new"), (False, "Step 3 holds 3 kernels where the others hold 2: new is extra.")),
        (("new", MUL), (False, f"Step 3 holds 2 kernels where the others hold 2: {GEMM} is missing; new is extra.")),
        ((), (False, f"Step 3 holds 0 kernels where the others hold 2: {GEMM} and 1 more are missing.")),
    ],
)
def test_settled(kernels, expected):
    assert settled(third(*kernels), 3) == expected


def test_the_number_of_steps_counts():
    assert settled(read_trace(trace(*two_steps())), 3) == (False, "The trace holds 2 steps where 3 were expected.")
    assert settled(read_trace(trace(op("a", 1, 1))), 3) == (False, "The trace holds no steps.")


def test_steps_without_any_kernel_are_not_settled():
    steps = [annotation("ProfilerStep#0", 1, 5), annotation("ProfilerStep#1", 10, 5)]
    tables = read_trace(trace(*steps, kernel("k", 1, 30, 1)))
    assert settled(tables, 2) == (False, "Most steps hold no kernel at all.")


def test_one_step():
    tables = read_trace(trace(annotation("ProfilerStep#0", 1, 5), op("a", 2, 1)))
    assert settled(tables, 1) == (True, "The only step holds 1 op.")
