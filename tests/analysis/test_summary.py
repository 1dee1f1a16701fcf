"""trace_summary: the whole result of a tiny trace."""

import json

from core.analysis.summary import trace_summary
from core.trace import read_trace
from tests.trace.build import kernel, trace, two_steps


def test_summary():
    summary = trace_summary(read_trace(trace(*two_steps(), kernel("late", 99, 500, None), {"ph": "i", "ts": 3})))
    assert json.loads(json.dumps(summary)) == {
        "n_events": 24,
        "n_kernels": 5,
        "n_memcpy": 0,
        "n_memset": 2,
        "kernel_time_us": 81.0,
        "gpu_busy_us_by_device": {"0": 85.0},
        "kernels_linked_to_launch": 4,
        "kernels_linked_to_op": 4,
        "kernels": [
            {"name": "ampere_sgemm_128x64_tn", "family": "gemm", "launches_per_step": 1.0, "n": 2, "median_us": 30.5,
             "min_us": 30.0, "max_us": 31.0, "sum_us": 61.0},
            {"name": "void at::native::vectorized_elementwise_kernel<4>", "family": "elementwise",
             "launches_per_step": 1.0, "n": 2, "median_us": 10.0, "min_us": 10.0, "max_us": 10.0, "sum_us": 20.0},
            {"name": "late", "family": "other", "launches_per_step": 0.0, "n": 0, "median_us": None, "min_us": None,
             "max_us": None, "sum_us": None},
        ],
        "notes": [
            "1 event without a usable duration: counted, but left out of all times.",
            "1 event on the GPU without a launch in the trace: shown, but belonging to no op and no step.",
        ],
    }  # fmt: skip
