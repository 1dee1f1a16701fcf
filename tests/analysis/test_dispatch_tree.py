"""dispatch_tree: who called whom and what that launched."""

from core.analysis.dispatch import Launched, dispatch_tree, rows
from core.trace import read_trace
from tests.trace.build import annotation, event, kernel, launch, op, trace, two_steps


def told(tree):
    return [(level, node.name, [work.kernel_name for work in node.launched]) for level, node in rows(tree)]


def test_whole_tree():
    tables = read_trace(trace(*two_steps()))
    tree = dispatch_tree(tables, 1)
    assert told(tree) == [
        (0, "ProfilerStep#1", []),
        (1, "aten::linear", []),
        (2, "aten::t", []),
        (2, "aten::addmm", ["Memset (Device)", "ampere_sgemm_128x64_tn"]),
        (1, "aten::mul", ["void at::native::vectorized_elementwise_kernel<4>"]),
    ]
    addmm = tree[0].children[0].children[1]
    assert (addmm.kind, addmm.start_us, addmm.dur_us) == ("op", 112.0, 30.0)
    names = tables.events["name"].to_pylist()
    assert names[addmm.row] == "aten::addmm"
    gemm = addmm.launched[1]
    assert gemm == Launched(
        launch_row=gemm.launch_row,
        launch_name="cudaLaunchKernel",
        kernel_row=gemm.kernel_row,
        kernel_name="ampere_sgemm_128x64_tn",
        kernel_us=31.0,
        family="gemm",
        kind="kernel",
    )
    assert (names[gemm.launch_row], names[gemm.kernel_row]) == ("cudaLaunchKernel", "ampere_sgemm_128x64_tn")


def test_threads_annotations_and_launches_outside_any_op():
    tables = read_trace(
        trace(
            annotation("ProfilerStep#0", 0, 100),
            annotation("linear_fwd", 10, 20),
            event("call", "python_function", 11, 18),
            launch(1, 12, 1),
            launch(2, 50, 1),
            op("backward", 40, 20, tid=2),
            launch(3, 41, 1, tid=2),
            launch(4, 80, 1, tid=3),
            launch(5, 90, 1),
            *(kernel(f"k{number}", number, 100 + number, None) for number in (1, 2, 3, 4)),
        )
    )
    tree = dispatch_tree(tables, 0)
    assert told(tree) == [
        (0, "ProfilerStep#0", ["k2", "k4"]),
        (1, "linear_fwd", ["k1"]),
        (0, "backward", ["k3"]),
    ]
    assert tree[0].launched[0].kernel_us is None


def test_no_such_step():
    assert dispatch_tree(read_trace(trace(*two_steps())), 9) == ()


def test_nodes_carry_their_inputs():
    tables = read_trace(
        trace(annotation("ProfilerStep#0", 0, 50), op("aten::t", 1, 5, dims=[[4, 2]], strides=[[2, 1]]), op("b", 9, 1))
    )
    found = [(node.name, node.input_dims, node.input_strides) for _, node in rows(dispatch_tree(tables, 0))]
    assert found == [("ProfilerStep#0", None, None), ("aten::t", "[4, 2]", "[2, 1]"), ("b", None, None)]
