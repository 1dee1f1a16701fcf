"""What a generated kernel computes: not the matrix products whose results it reads."""

from core.analysis.fused import Fused, fused

MM = ("extern_kernels.mm", "extern", ("aten.mm.default",))


def test_products_are_read_and_not_computed():
    operators = ("aten.reshape.default", "aten.mul.Tensor", "aten.mul.Tensor", "aten.tanh.default")
    found = fused(
        [(*MM, ("linear",)), (*MM, ("linear_1",)), ("k", "triton", operators, ("linear", "gelu", "linear_1", "mul"))]
    )
    lowered = ("aten.reshape.default", "aten.mul.Tensor", "aten.tanh.default")
    assert found == (Fused("k", ("gelu", "mul"), ("linear", "linear_1"), lowered),)


def test_a_backward_kernel_is_told_by_its_operators():
    nodes = tuple(f"mul_{number}" for number in range(18))
    found = fused([("b", "triton", ("aten.view", "aten.gelu", "aten.mul", "aten.gelu_backward"), nodes)])
    assert found[0].computes == ("gelu", "mul", "gelu_backward")
    assert found[0].reads == ()


def test_few_numbered_nodes_of_a_backward_are_told_by_operators_too():
    found = fused([("b", "triton", ("aten.view", "aten.add"), ("view_9", "view_11", "add_6"))])
    assert found[0].computes == ("add",)


def test_no_generated_kernel_is_nothing_to_tell():
    assert fused([(*MM, ("linear",))]) == ()
