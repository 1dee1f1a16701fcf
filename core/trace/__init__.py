"""Chrome traces of torch.profiler (Kineto) as columnar tables; knows nothing of the rooms above it."""

from core.trace.cache import open_tables, write_tables
from core.trace.errors import TablesError, TraceError
from core.trace.reader import event_args, read_trace
from core.trace.tables import GPU_WORK, KINDS, ROLES, Tables, codes, column, kind_mask

__all__ = [
    "GPU_WORK",
    "KINDS",
    "ROLES",
    "Tables",
    "TablesError",
    "TraceError",
    "codes",
    "column",
    "event_args",
    "kind_mask",
    "open_tables",
    "read_trace",
    "write_tables",
]
