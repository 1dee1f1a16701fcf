"""Which kernel, launch and operator belong together, from any of the three."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from core.trace import GPU_WORK, Tables, codes, column


@dataclass(frozen=True)
class Chain:
    """Event rows that belong together: GPU work, the launches that queued it, and the operator that made them.

    `operator` is None where no operator encloses the launch, `launches` is empty where the trace has none.
    """

    work: tuple[int, ...]
    launches: tuple[int, ...]
    operator: int | None

    @property
    def rows(self) -> tuple[int, ...]:
        """All of them."""
        return (*self.work, *self.launches, *(() if self.operator is None else (self.operator,)))


def chain(tables: Tables, row: int) -> Chain:
    """What belongs to the event in `row`: its launch and operator for GPU work, what it launched for the others.

    Raises IndexError for a row that the trace does not have.
    """
    events = tables.events
    if not 0 <= row < events.num_rows:
        raise IndexError(f"The trace has no event {row}.")
    launch_of, op_of = column(events, "launch"), column(events, "op")
    kind_codes, kinds = codes(events, "kind")
    kind = kinds[kind_codes[row]]
    if kind in GPU_WORK:
        launch = int(launch_of[row])
        return Chain((row,), () if launch < 0 else (launch,), None if op_of[row] < 0 else int(op_of[row]))
    if kind == "launch":
        work = tuple(np.flatnonzero(launch_of == row).tolist())
        return Chain(work, (row,), None if op_of[row] < 0 else int(op_of[row]))
    launches = _launches_inside(tables, row)
    work = tuple(np.flatnonzero(np.isin(launch_of, launches) & (launch_of >= 0)).tolist())
    return Chain(work, tuple(sorted({int(launch_of[w]) for w in work})), row)


def _launches_inside(tables: Tables, row: int) -> np.ndarray:
    """Launch calls on the same thread that start while the event in `row` is open, in nested operators too."""
    events = tables.events
    start_ns, dur_ns, track = column(events, "start_ns"), column(events, "dur_ns"), column(events, "track")
    kind_codes, kinds = codes(events, "kind")
    is_launch = kind_codes == kinds.index("launch") if "launch" in kinds else np.zeros(len(start_ns), bool)
    end_ns = start_ns[row] + max(int(dur_ns[row]), 0)
    inside = (start_ns >= start_ns[row]) & (start_ns < end_ns) & (track == track[row])
    return np.flatnonzero(is_launch & inside)
