"""Words that pages share."""

import pytest

from core.ui import words


def test_titles_that_are_alike_are_told_apart_by_their_ids():
    assert words.distinct({"a-111111": "batch 4", "a-222222": "batch 4", "b": "batch 8"}) == {
        "a-111111": "batch 4 · 111111",
        "a-222222": "batch 4 · 222222",
        "b": "batch 8",
    }
    found = words.distinct({"x-333333": "same", "y-333333": "same"})  # ids that end alike
    assert len(set(found.values())) == 2
    assert words.distinct({"a": "one"}) == {"a": "one"}


@pytest.mark.parametrize(("seconds", "told"), [(0.2, "under 1 s"), (5.2, "about 5 s"), (120.0, "about 2 min")])
def test_a_predicted_duration(seconds, told):
    assert words.predicted_duration(seconds) == told


@pytest.mark.parametrize(
    ("count", "told"),
    [(None, "unknown"), (5_900, "5.9 kB"), (7_500_000, "7.5 MB"), (141_000_000_000, "141.00 GB"), (4.2e12, "4.2 TB")],
)
def test_bytes_in_decimal_units(count, told):
    assert words.memory(count) == told
