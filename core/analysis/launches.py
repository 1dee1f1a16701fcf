"""How long launching takes: the call itself, and from the call to the kernel, apart for an idle and for a busy GPU."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from core.analysis.spread import Spread, spread
from core.trace import GPU_WORK, Tables, codes, column, kind_mask


@dataclass(frozen=True)
class GraphLaunches:
    """CUDA-graph launches: one call for many kernels. Latencies are to the first kernel of each launch."""

    launches: int
    kernels: int
    call_us: Spread | None
    idle_us: Spread | None
    queued_us: Spread | None


@dataclass(frozen=True)
class Launches:
    """Launches of the kernels of the profiled steps (of all kernels where a trace has no steps); times in µs.

    call_us: the launch call's own duration on the CPU. idle_us and queued_us: from the start of the call to the start
    of the kernel, where all earlier work of that GPU had ended when the call began (the true launch latency), and where
    it had not (the kernel waited for its turn). Left out are kernels without a launch in the trace (unlinked) and those
    that start before their call (early: two clocks). graphs is None where nothing was launched as a CUDA graph.
    """

    kernels: int
    call_us: Spread | None
    idle_us: Spread | None
    queued_us: Spread | None
    graphs: GraphLaunches | None
    unlinked: int
    early: int


def launches(tables: Tables) -> Launches:
    """The launches of a trace; memcpy and memset count as work a kernel waits behind, and not as kernels."""
    events = tables.events
    start_ns, dur_ns = column(events, "start_ns"), column(events, "dur_ns")
    launch, step = column(events, "launch"), column(events, "step")
    is_kernel = kind_mask(events, "kernel")
    if (step >= 0).any():
        # Kernels without a launch belong to no step, and are still missed.
        is_kernel &= (step >= 0) | (launch < 0)
    kernels = np.flatnonzero(is_kernel)
    linked = kernels[launch[kernels] >= 0]
    name_codes, names = codes(events, "name")
    is_graph = np.array(["GraphLaunch" in name for name in names], bool)[name_codes[launch[linked]]]
    latency_ns = start_ns[linked] - start_ns[launch[linked]]
    early = latency_ns < 0
    found_idle = _earlier_end_ns(tables)[linked] <= start_ns[launch[linked]]

    def latency_us(wanted: np.ndarray) -> Spread | None:
        return spread(latency_ns[wanted & ~early] / 1000)

    def calls_us(wanted: np.ndarray) -> Spread | None:
        calls = np.unique(launch[linked[wanted]])
        return spread(dur_ns[calls][dur_ns[calls] >= 0] / 1000)

    graphs = None
    if is_graph.any():
        # Events are sorted by start, so the first row of a launch is its first kernel.
        first = np.zeros(len(linked), bool)
        first[np.unique(np.where(is_graph, launch[linked], -1), return_index=True)[1]] = True
        first &= is_graph
        graphs = GraphLaunches(
            launches=int(first.sum()),
            kernels=int(is_graph.sum()),
            call_us=calls_us(is_graph),
            idle_us=latency_us(first & found_idle),
            queued_us=latency_us(first & ~found_idle),
        )
    return Launches(
        kernels=len(kernels),
        call_us=calls_us(~is_graph),
        idle_us=latency_us(~is_graph & found_idle),
        queued_us=latency_us(~is_graph & ~found_idle),
        graphs=graphs,
        unlinked=len(kernels) - len(linked),
        early=int(early.sum()),
    )


def _earlier_end_ns(tables: Tables) -> np.ndarray:
    """Per event on a GPU when all work that started before it on the same GPU had ended; the least int64 for the rest."""
    events = tables.events
    device = column(events, "device")
    end_ns = column(events, "start_ns") + np.maximum(column(events, "dur_ns"), 0)
    found = np.full(events.num_rows, np.iinfo(np.int64).min)
    work = np.flatnonzero(kind_mask(events, *GPU_WORK))
    for number in np.unique(device[work]):
        rows = work[device[work] == number]
        found[rows[1:]] = np.maximum.accumulate(end_ns[rows])[:-1]
    return found
