"""Where work is carried out: jobs for worker processes behind dask.distributed. Never imports torch itself."""

from core.engine.engine import Engine
from core.engine.model import KINDS, STATES, EngineError, Failure, Job, TlsFiles, WorkerKind

__all__ = ["KINDS", "STATES", "Engine", "EngineError", "Failure", "Job", "TlsFiles", "WorkerKind"]
