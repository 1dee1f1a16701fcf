"""Files that are no trace: one sentence each, never another exception."""

import gzip
import re

import pytest

from core.trace import Tables, TraceError, read_trace
from tests.trace.build import trace, two_steps

WHOLE = trace(*two_steps(), deviceProperties=[{"id": 0, "name": "NVIDIA \\ X"}])


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "empty"),
        (b" \n ", "empty"),
        (b"PK\x03\x04rest", "zip archive"),
        (b"hello", "not JSON"),
        (b"<html></html>", "not JSON"),
        (b"\xff\xfe{\x00", "not JSON"),
        (b"null", "no traceEvents"),
        (b"{}", "no traceEvents"),
        (b'{"traceEvents":{}}', "no traceEvents"),
        (b"[]", "no complete"),
        (b"[1, 2]", "no complete"),
        (b'{"traceEvents":[{"ph":"M"}]}', "no complete"),
        (b'[{"ph":"X"}]', "no event|No event"),
        (b'[{"ph":"X","ts":1e400}]', "No event"),
        (b'[{"ph":"X","ts":1,}, oops]', "not valid JSON"),
        (b"[" * 100_000, "nesting"),
        (b'{"traceEvents":[{"a":' + b"[" * 100_000, "nesting"),
        (b"[" + b"1" * 5000 + b"]", "numbers|no complete"),
        (WHOLE[:200], "cut off"),
        (gzip.compress(WHOLE)[:100], "ends too early"),
        (gzip.compress(WHOLE)[:-6] + b"abcdef", "damaged"),
        (b"\x1f\x8b" + b"x" * 60, "damaged"),
    ],
)
def test_says_what_is_wrong(content, says):
    with pytest.raises(TraceError, match=says) as caught:
        read_trace(content)
    assert re.fullmatch(r"[A-Z].*\.", str(caught.value))


def test_missing_file_and_folder(tmp_path):
    for path in (tmp_path / "none.json", tmp_path):
        with pytest.raises(TraceError, match="cannot be read"):
            read_trace(path)


@pytest.mark.parametrize("content", [WHOLE, gzip.compress(WHOLE)], ids=["plain", "gzip"])
def test_cut_anywhere_is_an_error_in_words(content):
    for size in range(len(content)):
        with pytest.raises(TraceError):
            read_trace(content[:size])


def test_bytes_changed_anywhere_give_a_table_or_an_error_in_words():
    for position in range(0, len(WHOLE), 3):
        for byte in (b"\x00", b"\xff", b'"', b"\\", b"9", b"-", b"{"):
            try:
                assert isinstance(read_trace(WHOLE[:position] + byte + WHOLE[position + 1 :]), Tables)
            except TraceError as error:
                assert str(error).endswith(".")
