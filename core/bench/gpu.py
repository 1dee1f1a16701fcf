"""What NVML tells of the GPU: clocks, power, temperature, throttle reasons, other processes. Unknown where it is silent."""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import functools
import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pynvml
import torch

from core.store.manifest import ClockSample, Process, is_throttled

T = TypeVar("T")
SAMPLE_EVERY_S = 0.05
RECOVERY_S = 5.0


@functools.cache
def _start_nvml() -> None:
    """Once a process, for it takes a tenth of a second; tried again where it failed."""
    pynvml.nvmlInit()


def handle() -> Any:
    """NVML's handle of the GPU torch uses. Raises pynvml.NVMLError where there is none."""
    _start_nvml()
    return pynvml.nvmlDeviceGetHandleByUUID(f"GPU-{torch.cuda.get_device_properties(0).uuid}".encode())


def driver_version() -> str | None:
    """The driver's version, None where NVML does not answer."""
    try:
        _start_nvml()
        return str(pynvml.nvmlSystemGetDriverVersion())
    except pynvml.NVMLError:
        return None


def read_clocks(gpu: Any, at_s: float) -> ClockSample:
    """One reading; each value None where this card does not tell it."""
    power_mw = _known(lambda: pynvml.nvmlDeviceGetPowerUsage(gpu))
    return ClockSample(
        at_s=round(at_s, 4),
        sm_mhz=_known(lambda: pynvml.nvmlDeviceGetClockInfo(gpu, pynvml.NVML_CLOCK_SM)),
        memory_mhz=_known(lambda: pynvml.nvmlDeviceGetClockInfo(gpu, pynvml.NVML_CLOCK_MEM)),
        power_w=None if power_mw is None else power_mw / 1000,
        temperature_c=_known(lambda: pynvml.nvmlDeviceGetTemperature(gpu, pynvml.NVML_TEMPERATURE_GPU)),
        throttle_reasons=_known(lambda: pynvml.nvmlDeviceGetCurrentClocksEventReasons(gpu)),
    )


def clocks_now() -> tuple[ClockSample, ...]:
    """One reading of this moment, empty where NVML does not answer."""
    try:
        return (read_clocks(handle(), 0.0),)
    except pynvml.NVMLError:
        return ()


def wait_for_clocks() -> None:
    """Waits a few seconds at most until nothing holds the clocks down: the load of an earlier run does for a while."""
    deadline = time.perf_counter() + RECOVERY_S
    while any(is_throttled(sample) for sample in clocks_now()) and time.perf_counter() < deadline:
        time.sleep(SAMPLE_EVERY_S)


class ClockLoop:
    """Reads the clocks every 50 ms in a thread beside a measured loop. Use as a context; then see `samples`, `why`."""

    def __init__(self) -> None:
        self.samples: tuple[ClockSample, ...] = ()
        self.why: str | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._loop, name="clocks", daemon=True)

    def __enter__(self) -> ClockLoop:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._stop.set()
        self._thread.join()

    def _loop(self) -> None:
        start = time.perf_counter()
        taken: list[ClockSample] = []
        try:
            gpu = handle()
            while not self._stop.wait(SAMPLE_EVERY_S):
                taken.append(read_clocks(gpu, time.perf_counter() - start))
        except pynvml.NVMLError as error:
            self.why = f"NVML does not answer ({error})."
        self.samples = tuple(taken)


def give_back() -> None:
    """Gives this process's hold on the device back, for good: its end alone would do so beside somebody else's measuring."""
    if torch.cuda.is_initialized():
        with contextlib.suppress(OSError, AttributeError):  # no such driver here: the end of the process does it
            ctypes.CDLL("libcuda.so.1").cuDevicePrimaryCtxReset_v2(torch.cuda.current_device())


def other_processes() -> tuple[Process, ...] | None:
    """Other processes that compute on the GPU, None where NVML does not tell."""
    try:
        running = pynvml.nvmlDeviceGetComputeRunningProcesses(handle())
    except pynvml.NVMLError:
        return None
    if os.getpid() not in {p.pid for p in running}:
        return None  # this process does use the GPU: in a container NVML may list nobody, or the host's process ids
    return tuple(Process(p.pid, p.usedGpuMemory) for p in running if p.pid != os.getpid())


@contextlib.contextmanager
def exclusive(report_waiting: Callable[[], None]) -> Iterator[None]:
    """One profile at a time on this machine's GPU (or CPU), across processes: two servers may share one card.

    Whoever waits goes next: a sweep that lets go between two points does not take the device again before them.
    """
    name = "cpu" if not torch.cuda.is_available() else str(torch.cuda.get_device_properties(0).uuid)
    folder = Path(tempfile.gettempdir())
    lock, turnstile = (_lock_file(folder / f"fusionscope-{name}{suffix}.lock") for suffix in ("", "-next"))
    try:
        try:
            fcntl.flock(turnstile, fcntl.LOCK_EX | fcntl.LOCK_NB)
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            report_waiting()
            fcntl.flock(turnstile, fcntl.LOCK_EX)
            fcntl.flock(lock, fcntl.LOCK_EX)
        fcntl.flock(turnstile, fcntl.LOCK_UN)
        yield
    finally:
        os.close(lock)
        os.close(turnstile)


def _lock_file(path: Path) -> int:
    """The lock file, opened for reading alone: that is enough for a lock, and another user's file serves as well.

    A link of that name is not followed. Raises OSError where somebody put something else in its place.
    """
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    try:
        return os.open(path, flags | os.O_CREAT, 0o644)
    except PermissionError:  # a shared folder may forbid O_CREAT on a file that another user owns
        return os.open(path, flags)


def _known(read: Callable[[], T]) -> T | None:
    try:
        return read()
    except pynvml.NVMLError:
        return None
