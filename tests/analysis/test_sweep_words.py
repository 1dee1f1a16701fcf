"""How numbers stand in sentences, and which points may be set beside each other."""

import pytest

from core.analysis.points import apart, clocks_apart, is_noise, plain_series
from core.analysis.wording import about, counted, listed, ordinal, percent, seconds, sizes_words, times, us, us_range
from tests.points import about as spread_about
from tests.points import of, point


@pytest.mark.parametrize(
    ("told", "words"),
    [
        (us(2.718), "2.72 µs"),
        (us(44.26), "44.3 µs"),
        (us(1234.5), "1,234 µs"),
        (us(12_345.0), "12.3 ms"),
        (us_range(37.0, 56.8), "37.0 to 56.8 µs"),
        (us_range(44.01, 44.02), "44.0 µs"),
        (us_range(9_990.0, 10_000.0), "9,990 µs to 10.0 ms"),
        (seconds(0.004), "4.00 ms"),
        (seconds(0.17), "0.17 s"),
        (seconds(31.0), "31.0 s"),
        (seconds(3000.0), "50.0 min"),
        (seconds(7200.0), "2.00 h"),
        (about(12_345.6), "12,000"),
        (about(99.7), "100"),
        (about(7.2), "7"),
        (percent(0.214), "21%"),
        (percent(0.0996), "10%"),
        (percent(0.024), "2.4%"),
        (counted(1, "size"), "1 size"),
        (counted(1200, "size"), "1,200 sizes"),
        (counted(2, "batch", "batches"), "2 batches"),
        (times(1), "once"),
        (times(2), "twice"),
        (times(3), "3 times"),
        (" ".join(map(ordinal, (1, 2, 3, 4, 11, 12, 13, 21, 112))), "1st 2nd 3rd 4th 11th 12th 13th 21st 112th"),
        (listed(["a, b", "c"]), "a, b and c"),
        (listed(["a", "b", "c"]), "a; b and c"),
        (sizes_words(("batch", "seq"), (8, 512)), "batch 8, seq 512"),
    ],
)
def test_words(told, words):
    assert told == words


def test_clocks_a_little_apart_are_alike():
    near = (point("eager", 0, 8), point("compile", 0, 8, clocks_mhz=(1950, 1980)))
    assert apart(near, ("a", "b")) is None
    far = (point("eager", 0, 8), point("compile", 0, 8, clocks_mhz=(1620, 1980)))
    assert clocks_apart(far) == "the clocks differ (1,620 to 1,980 MHz)"


def test_noise_is_two_percent_or_overlapping_middle_halves():
    assert is_noise(spread_about(100.0), spread_about(101.9))
    assert not is_noise(spread_about(100.0), spread_about(103.0))
    assert is_noise(spread_about(100.0, by=0.1), spread_about(106.0, by=0.1))


def test_what_others_are_held_against_neither_compiles_nor_fuses():
    assert plain_series((of("liger"), of("compile"), of("eager"))).name == "eager"
    assert plain_series((of("liger"), of("compile"))) is None
