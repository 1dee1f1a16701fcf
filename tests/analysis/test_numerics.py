"""What rounding explains, and what it does not."""

from core.analysis.numerics import Difference, mismatch


def test_rounding_is_no_mismatch_and_unknown_is_none_either():
    assert mismatch([Difference("output", 4e-3, True), Difference("gradient of x", None, True)], "bf16") is None
    assert mismatch([], "bf16") is None


def test_the_worst_tensor_is_named_by_what_its_format_explains():
    told = mismatch([Difference("output", 4e-3, True), Difference("gradient of x", 0.5, True)], "fp16")
    assert told.startswith("The gradient of x is 0.5 away from eager fp32, more than the 0.003 that fp16 explains")
    assert mismatch([Difference("output", 4e-3, True)], "fp32") is not None


def test_what_is_not_finite_comes_first():
    told = mismatch([Difference("output", 9.0, True), Difference("gradient of x", None, False)], "bf16")
    assert told.startswith("The gradient of x holds NaN or infinity")
