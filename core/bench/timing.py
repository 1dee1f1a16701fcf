"""The measured loops: warm-up, the profiled window, and the step without the profiler. Read it top to bottom."""

from __future__ import annotations

import itertools
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch.profiler import ProfilerActivity, profile, record_function, schedule

from core.analysis.spread import spread
from core.analysis.steps import settled
from core.bench.gpu import ClockLoop, clocks_now
from core.bench.torch_internals import fresh_generator
from core.store.manifest import ClockSample, Load, Protocol, Samples
from core.trace import Tables, read_trace

Step = Callable[[], object]

PROFILE_ATTEMPTS = 3
BURST_S = {"cuda": 0.25, "cpu": 2.0}
BURST_STEPS_MIN = {"cuda": 20, "cpu": 5}
BURST_STEPS_MAX = 200
LOAD_S = 1.2
REPLAYS = 50
REPLAY_S = 0.3


def synchronize(device: str) -> None:
    """Waits for the device; nothing to wait for on the CPU."""
    if device == "cuda":
        torch.cuda.synchronize()


def warm_up(step: Step, device: str, calls: int) -> None:
    """The calls before anything is measured."""
    for _ in range(calls):
        step()
    synchronize(device)


@dataclass(frozen=True)
class ProfiledWindow:
    """A profile: gzipped Chrome JSON and its tables, the clocks right before and after it, how many attempts it took,
    and the sentence why its steps never held the same kernels (None where they do)."""

    trace: bytes
    tables: Tables
    clocks: tuple[ClockSample, ...]
    attempts: int
    why: str | None


def profile_window(step: Step, device: str, label: str, protocol: Protocol) -> tuple[bytes, tuple[ClockSample, ...]]:
    """Profiles `protocol.steps` steps the article's way; the trace as gzipped Chrome JSON, and the clocks around it."""
    warnings.filterwarnings("ignore", message=".*Profiler clears events at the end of each cycle")
    activities = [ProfilerActivity.CPU] + ([ProfilerActivity.CUDA] if device == "cuda" else [])
    before = protocol.schedule_wait + protocol.schedule_warmup
    clocks = list(clocks_now() if device == "cuda" else ())

    def ready(profiler: profile) -> None:
        clocks.extend(clocks_now() if device == "cuda" else ())  # before the export, in which the card would idle
        profiler.export_chrome_trace(str(path))

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json.gz"
        with profile(
            activities=activities,
            schedule=schedule(
                wait=protocol.schedule_wait, warmup=protocol.schedule_warmup, active=protocol.steps, repeat=1
            ),
            on_trace_ready=ready,
            record_shapes=True,
        ) as profiler:
            for index in range(before + protocol.steps):
                with record_function(label):
                    step()
                if index == before - 1:
                    synchronize(device)  # or kernels of the warm-up step end up in the window, without their launch
                profiler.step()
        return path.read_bytes(), tuple(clocks)


def settled_window(step: Step, device: str, label: str, protocol: Protocol) -> ProfiledWindow:
    """Profiles until every step holds the same kernels, three times at most: Kineto may drop the first ones silently."""
    for attempt in range(1, PROFILE_ATTEMPTS + 1):
        trace, clocks = profile_window(step, device, label, protocol)
        tables = read_trace(trace)
        same, why = settled(tables, protocol.steps)
        if same:
            return ProfiledWindow(trace, tables, clocks, attempt, None)
    return ProfiledWindow(trace, tables, clocks, attempt, why)


def step_times(step: Step, device: str, *, burst_s: float | None = None) -> tuple[Samples, tuple[ClockSample, ...]]:
    """Times of single steps without the profiler, in a burst: device events on a GPU, the host's clock on a CPU. Beside them
    the clocks while the GPU was at work on them: a burst may pull them down where the short profile did not.

    `burst_s` is about how long the burst lasts (None: as long as a run's).
    """
    count = _steps_for(step, device, BURST_S[device] if burst_s is None else burst_s)
    if device == "cpu":
        times = [time.perf_counter()]
        for _ in range(count):
            step()
            times.append(time.perf_counter())
        values = [(b - a) * 1e6 for a, b in itertools.pairwise(times)]
        return Samples("us", "host clock around each step, no profiler", _rounded(values)), ()
    clocks: list[ClockSample] = []
    values = _event_times(step, count, lambda: clocks.extend(clocks_now()))
    return Samples("us", "device events around each step, no profiler", _rounded(values)), tuple(clocks)


def load(step: Step) -> Load:
    """The step repeated on a GPU for at least a second, with the clocks read beside it."""
    times: list[float] = []
    start = time.perf_counter()
    with ClockLoop() as clocks:
        while time.perf_counter() - start < LOAD_S:
            times += _event_times(step, BURST_STEPS_MIN["cuda"])
        seconds = time.perf_counter() - start
    taken = spread(times)
    assert taken is not None  # the loop runs at least once
    return Load(round(seconds, 3), taken, clocks.samples, clocks.why)


def graph_replay(step: Step, device: str) -> tuple[Samples | None, str | None]:
    """The step captured once as a CUDA graph and replayed: the device's work without the CPU's.

    Returns the times, or None and why there are none.
    """
    if device == "cpu":
        return None, "CUDA graphs need a GPU."
    if _waits_for_device(step):
        return None, "The step waits for the GPU in its middle to read a value back, so it cannot be a CUDA graph."
    stream = torch.cuda.Stream()
    try:
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(3):
                step()
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            step()
    except RuntimeError as error:
        synchronize(device)
        fresh_generator()
        return None, f"The step cannot be captured as a CUDA graph ({str(error).splitlines()[0][:120]})."
    start = time.perf_counter()
    graph.replay()
    synchronize(device)
    once_s = time.perf_counter() - start
    values = _event_times(graph.replay, max(20, min(REPLAYS, int(REPLAY_S / once_s))))
    return Samples("us", "device events around each replay of the captured step", _rounded(values)), None


def _waits_for_device(step: Step) -> bool:
    """Whether a step synchronizes by itself: a capture would fail on it, and leave the process in the middle of one."""
    mode = torch.cuda.get_sync_debug_mode()
    torch.cuda.set_sync_debug_mode("error")
    try:
        step()
    except RuntimeError as error:
        if "synchronizing" not in str(error):
            raise
        return True
    finally:
        torch.cuda.set_sync_debug_mode(mode)
    return False


def _steps_for(step: Step, device: str, burst_s: float) -> int:
    """How many steps fill the budget. Runs a few first: right after the profiler they are slower."""
    tries = BURST_STEPS_MIN[device] if device == "cuda" else 1
    start = time.perf_counter()
    warm_up(step, device, tries)
    once_s = max(time.perf_counter() - start, 1e-6) / tries
    return max(BURST_STEPS_MIN[device], min(BURST_STEPS_MAX, int(burst_s / once_s)))


def _event_times(step: Step, count: int, meanwhile: Callable[[], object] = lambda: None) -> list[float]:
    """Microseconds of each of `count` steps. `meanwhile` is called once all are queued, while the device may still be at them."""
    events = [torch.cuda.Event(enable_timing=True) for _ in range(count + 1)]
    torch.cuda.synchronize()
    events[0].record()
    for event in events[1:]:
        step()
        event.record()
    meanwhile()
    torch.cuda.synchronize()
    return [a.elapsed_time(b) * 1e3 for a, b in itertools.pairwise(events)]


def _rounded(values: list[float]) -> tuple[float, ...]:
    return tuple(round(value, 3) for value in values)
