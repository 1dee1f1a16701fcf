"""The reader and the analysis against the shared sample traces, whose numbers were computed independently."""

import json
from pathlib import Path

import numpy as np
import pytest

from core.analysis.summary import trace_summary
from core.trace import column, kind_mask, read_trace

SHARED = Path(__file__).resolve().parents[2].parent / "shared"
EXPECTED_FILE = SHARED / "traces" / "expected.json"
EXPECTED = json.loads(EXPECTED_FILE.read_text()) if EXPECTED_FILE.is_file() else {}
NAMES = sorted(name for name in EXPECTED if not name.startswith("_"))
OWN = sorted(path.name for path in (SHARED / "h200_samples").glob("*.json.gz"))

pytestmark = pytest.mark.skipif(not NAMES, reason="the shared sample traces are not here")


def near(value):
    return pytest.approx(value, abs=0.001, rel=0)


@pytest.mark.parametrize("name", NAMES)
def test_every_expected_number(name):
    expected = EXPECTED[name]
    tables = read_trace(SHARED / "traces" / name)
    summary = trace_summary(tables)
    for key in ("n_events", "n_kernels", "n_memcpy", "n_memset", "kernels_linked_to_launch", "kernels_linked_to_op"):
        assert summary[key] == expected[key], key
    assert summary["kernel_time_us"] == near(expected["kernel_time_us"])
    assert summary["gpu_busy_us_by_device"] == near(expected["gpu_busy_us_by_device"])
    assert len(summary["kernels"]) == expected["n_distinct_kernels"]
    for found, top in zip(summary["kernels"], expected["top_kernels"], strict=False):
        assert (found["n"], found["sum_us"]) == (top["count"], near(top["sum_us"]))
    sums = {kernel["name"]: kernel["sum_us"] for kernel in summary["kernels"]}
    assert all(sums[top["name"]] == near(top["sum_us"]) for top in expected["top_kernels"])
    assert json.loads(json.dumps(summary)) == summary


@pytest.mark.parametrize("name", NAMES)
def test_streams_and_launches(name):
    expected = EXPECTED[name]
    events = read_trace(SHARED / "traces" / name).events
    is_kernel = kind_mask(events, "kernel")
    stream, device = column(events, "stream")[is_kernel], column(events, "device")[is_kernel]
    start_ns, dur_ns = column(events, "start_ns")[is_kernel], column(events, "dur_ns")[is_kernel]
    by_stream: dict[str, float] = {}
    overlap_ns = 0
    for one_device, one_stream in sorted(set(zip(device.tolist(), stream.tolist(), strict=True))):
        here = (device == one_device) & (stream == one_stream)
        by_stream[f"{one_device}/{one_stream}"] = dur_ns[here].sum() / 1000
        end = (start_ns + dur_ns)[here]
        reached = np.concatenate((start_ns[here][:1], np.maximum.accumulate(end)[:-1]))
        overlap_ns += dur_ns[here].sum() - np.maximum(end - np.maximum(start_ns[here], reached), 0).sum()
    assert by_stream == near(expected["kernel_time_us_by_stream"])
    assert overlap_ns / 1000 == near(expected["same_stream_kernel_overlap_us"])
    launch = column(events, "launch")[is_kernel]
    most = np.unique(launch[launch >= 0], return_counts=True)[1].max(initial=0)
    assert most == expected["max_kernels_per_launch"]


@pytest.mark.parametrize("name", OWN)
def test_own_samples_have_every_kernel_linked(name):
    tables = read_trace(SHARED / "h200_samples" / name)
    summary = trace_summary(tables)
    assert summary["n_kernels"] == summary["kernels_linked_to_launch"] == summary["kernels_linked_to_op"] > 0
    assert tables.meta["notes"] == []
    assert tables.meta["devices"][0]["name"] == "NVIDIA H200"
