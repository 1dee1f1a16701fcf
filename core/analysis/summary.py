"""A trace in a handful of numbers, as plain JSON: what the command line prints and tests compare."""

import math
from typing import Any

from core.analysis.busy import busy_us_by_device
from core.analysis.kernels import kernel_table
from core.trace import Tables, column, kind_mask


def trace_summary(tables: Tables) -> dict[str, Any]:
    """Counts, times (us, to the nanosecond), links and kernels by name (largest sum first); None for unknown.

    n_events counts every entry of the file. kernel_time_us is a sum, gpu_busy_us_by_device a union with copies and
    fills. A kernel is linked to an op when its launch lies inside one.
    """
    events = tables.events
    is_kernel = kind_mask(events, "kernel")
    dur_ns = column(events, "dur_ns")
    timed = is_kernel & (dur_ns >= 0)
    table = kernel_table(tables, by=("name",))
    kernels = table[table["kind"] == "kernel"].sort_values("sum_us", ascending=False, kind="stable")
    columns = ["name", "family", "launches_per_step", "n", "median_us", "min_us", "max_us", "sum_us"]
    return {
        "n_events": tables.meta["n_events_in_file"],
        "n_kernels": int(is_kernel.sum()),
        "n_memcpy": int(kind_mask(events, "memcpy").sum()),
        "n_memset": int(kind_mask(events, "memset").sum()),
        "kernel_time_us": None if is_kernel.any() and not timed.any() else float(dur_ns[timed].sum() / 1000),
        "gpu_busy_us_by_device": {
            "unknown" if device < 0 else str(device): busy_us for device, busy_us in busy_us_by_device(tables).items()
        },
        "kernels_linked_to_launch": int((is_kernel & (column(events, "launch") >= 0)).sum()),
        "kernels_linked_to_op": int((is_kernel & (column(events, "op") >= 0)).sum()),
        "kernels": [
            {name: _plain(value) for name, value in zip(columns, row, strict=True)}
            for row in kernels[columns].itertuples(index=False, name=None)
        ],
        "notes": list(tables.meta["notes"]),
    }


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return None if math.isnan(value) else round(value, 3)
    return value
