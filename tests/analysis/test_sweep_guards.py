"""Why an entry could not serve a call, in plain words; what is not understood stays in Dynamo's, and says so."""

import pytest

from core.analysis.guards import NO_REASON, Reason, opened_sizes, reason
from core.analysis.ledger import DimName, GuardMiss
from tests.points import DIMS, X_DIMS

SIZES = {"batch": 1, "seq": 64, "hidden": 256, "intermediate": 512}
TWO_AND_MORE = (
    "2 <= x.size()[0]  # return F.linear(input, self.weight, self.bias)  # nn/modules/linear.py:134 in forward (user code "
    "shown is first use of this value--the guard itself is not due user code but due to 0/1 specialization in the framework)"
)
WEIGHT = (
    "tensor 'self._modules['up']._parameters['weight']' size mismatch at index 0. expected 128, actual 256. Guard failed on "
    "a parameter, consider using torch._dynamo.config.force_parameter_static_shapes = False to allow dynamism on parameters."
)


@pytest.mark.parametrize(
    ("words", "plain"),
    [
        ("tensor 'x' size mismatch at index 0. expected 4, actual 8", "batch 8, and entry 0/0 was made for 4"),
        ("tensor 'L['x']' size mismatch at index 1. expected 64, actual 77", "seq 77, and entry 0/0 was made for 64"),
        (TWO_AND_MORE, "batch 1: entry 0/0 serves 2 and more (size 1 is always compiled by itself)"),
        ("L['x'].size()[1] <= 32", "seq 64: entry 0/0 serves 32 and less"),
        ("128 <= x.size()[1] <= 512", "seq 64: entry 0/0 serves 128 to 512"),
        ("x.size()[1] == 128", "seq 64, and entry 0/0 was made for 128"),
        (WEIGHT, "intermediate 256 of up's weight, and entry 0/0 was made for 128 (weights are never made dynamic)"),
        (
            "tensor 'self._parameters['bias']' size mismatch at index 0. expected 64, actual 32",
            "size 32 of the bias, and entry 0/0 was made for 64 (parameters are never made dynamic)",
        ),
        (
            "tensor 'x' stride mismatch at index 0. expected 768, actual 1024",
            "x lies otherwise in memory (stride 1024 of dimension 0), and entry 0/0 was made for 768",
        ),
        (
            "tensor 'y' size mismatch at index 0. expected 4, actual 8",
            "dimension 0 of y is 8, and entry 0/0 was made for 4",
        ),
    ],
)
def test_dynamos_words_are_put_plainly(words, plain):
    assert reason(GuardMiss("0/0", words), SIZES, DIMS) == Reason("0/0", words, plain, True)


def test_a_size_that_is_not_known_is_not_made_up():
    def told(words):
        return reason(GuardMiss("0/1", words), {}, X_DIMS).plain

    assert told(TWO_AND_MORE).startswith("batch 1: ")  # what is below two is one
    assert told("x.size()[1] <= 32") == "seq: entry 0/1 serves 32 and less"
    assert told("8 <= z.size()[0]") == "dimension 0 of z: entry 0/1 serves 8 and more"
    assert told("x.size()[1] == 8").endswith("in Dynamo's words: x.size()[1] == 8")


def test_sizes_joined_in_one_dimension_keep_their_names():
    dims = (DimName("input", 0, "batch · seq"),)
    miss = GuardMiss(None, "tensor 'input' size mismatch at index 0. expected 4, actual 8")
    assert reason(miss, {}, dims).plain == "batch · seq 8, and an older entry was made for 4"


LINEAR = (
    DimName("input", 0, "batch"),
    DimName("input", 1, "in_features"),
    DimName("self._parameters['bias']", 0, "out_features"),
)


@pytest.mark.parametrize(
    ("words", "plain"),
    [
        (
            "tensor 'fn._parameters['bias']' size mismatch at index 0. expected 3072, actual 4096. Guard failed on a parameter",
            "out features 4,096 of the bias, and entry 0/0 was made for 3,072 (parameters are never made dynamic)",
        ),
        (
            "tensor 'args[0]' size mismatch at index 1. expected 768, actual 1024",
            "in features 1,024, and entry 0/0 was made for 768",
        ),
        (
            "2 <= L['args'][0].size()[0]",
            "batch 1: entry 0/0 serves 2 and more (size 1 is always compiled by itself)",
        ),
        (
            "tensor 'args[1]' size mismatch at index 1. expected 768, actual 1024",
            "dimension 1 of args[1] is 1,024, and entry 0/0 was made for 768",
        ),
    ],
)
def test_a_module_of_pytorchs_own_is_named_through_its_wrapper(words, plain):
    assert reason(GuardMiss("0/0", words), {"batch": 1}, LINEAR).plain == plain
    assert opened_sizes([DimName("args", 0, "")], LINEAR) == ("batch",)


def test_what_is_not_understood_is_dynamos_own_and_short():
    found = reason(GuardMiss("0/0", "x.stride()[0] == 64*x.size()[1]  # (somewhere.py:1)"), SIZES, DIMS)
    assert found.plain == "entry 0/0 did not fit, in Dynamo's words: x.stride()[0] == 64*x.size()[1]"
    assert (found.is_understood, found.dynamo) == (False, "x.stride()[0] == 64*x.size()[1]  # (somewhere.py:1)")
    long = reason(GuardMiss("0/0", "check " * 100), SIZES, DIMS)
    assert len(long.plain) < 160
    assert long.plain.endswith("…")


def test_no_words_are_no_reason():
    assert reason(GuardMiss("0/0", ""), SIZES, DIMS) == Reason("0/0", "", NO_REASON, False)


def test_a_size_of_several_tensors_opens_once():
    assert opened_sizes(DIMS, ()) == ("batch", "seq", "hidden", "intermediate")
    assert opened_sizes([DimName("y", 1, "")], DIMS) == ("dimension 1 of y",)
    assert opened_sizes([], DIMS) == ()
