"""`python -m core.bench.fresh`: one cold compile in a process of its own; order on stdin, a Compile row on stdout."""

from __future__ import annotations

import ctypes
import signal
import sys
from dataclasses import replace

import msgspec

from core.bench.build import build
from core.bench.compiling import profiled_compile
from core.bench.machine import torch_device
from core.bench.tasks import RunOrder

_PR_SET_PDEATHSIG = 1


def _end_with_parent() -> None:
    """Left alone, this process would measure beside the next run: the lock on the device is its parent's."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def main() -> None:
    """Reads the order, compiles, writes the row as one line."""
    _end_with_parent()
    order = msgspec.json.decode(sys.stdin.buffer.read(), type=RunOrder)
    device = torch_device()
    row = profiled_compile(order.workload, build(order.workload, device), device, order.protocol)
    sys.stdout.buffer.write(msgspec.json.encode(replace(row, process="fresh")) + b"\n")


if __name__ == "__main__":
    main()
