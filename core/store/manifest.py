"""The manifest of a run: everything about it that is not the trace. Frozen dataclasses and their JSON.

None always means "unknown", and never 0. `*_why` says in one sentence why something is unknown.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import msgspec

from core.analysis.spread import Spread
from core.estimate import Estimate, Rates
from core.store.point import Point
from core.workload import Workload, backend_of

FORMAT = 1
PROTOCOL = 1

#: Bits of nvmlClocksEventReasons that hold clocks down (nvml.h).
THROTTLE_REASONS: dict[int, str] = {
    0x4: "power cap",
    0x8: "hardware slowdown",
    0x10: "sync boost",
    0x20: "software thermal limit",
    0x40: "hardware thermal limit",
    0x80: "power brake",
}
THROTTLE_MASK = sum(THROTTLE_REASONS)


STATUSES = ("ok", "unsettled", "failed")


class ManifestError(ValueError):
    """A manifest that cannot be read; the text is one sentence."""


@dataclass(frozen=True)
class Device:
    """What carried the run out. `kind` is "gpu" or "cpu"; memory in bytes; clocks and driver where known."""

    kind: str
    name: str
    memory_bytes: int | None = None
    driver: str | None = None
    cuda: str | None = None
    compute_capability: str | None = None
    multiprocessors: int | None = None
    cores: int | None = None


@dataclass(frozen=True)
class Machine:
    """What a worker runs on, what it was seen to do, and what is missing for some backends: a sentence by their name."""

    device: Device
    versions: dict[str, str | None]
    rates: Rates
    gaps: dict[str, str]

    @property
    def short(self) -> str:
        """The device in two words, for a button."""
        return "this GPU" if self.device.kind == "gpu" else "this CPU"


@dataclass(frozen=True)
class Protocol:
    """How the run was measured. Runs of different protocol versions are not set side by side.

    A `light` one is what hundreds of sizes can afford: one cold compile at most, its kernels compiled in the process itself
    rather than in Inductor's pool, and no second under load.
    """

    steps: int
    warmup_calls: int = 3
    schedule_wait: int = 1
    schedule_warmup: int = 1
    cold_compiles: int = 0
    fresh_process_compiles: int = 0
    light: bool = False
    version: int = PROTOCOL


def protocol_for(workload: Workload, fresh_process_compiles: int = 0, *, light: bool = False) -> Protocol:
    """How this code measures the workload; compiles are counted only where the backend compiles."""
    compiles = backend_of(workload).cold_compiles
    if light:
        compiles = min(compiles, 1)
    return Protocol(
        steps=workload.steps,
        cold_compiles=compiles,
        fresh_process_compiles=fresh_process_compiles if compiles else 0,
        light=light,
    )


@dataclass(frozen=True)
class Samples:
    """Measured values in `unit`, in the order they were taken; `how` says with what clock."""

    unit: str
    how: str
    values: tuple[float, ...]


@dataclass(frozen=True)
class ClockSample:
    """One NVML reading, `at_s` seconds into the loop. `power_w` is NVML's own average of about a second."""

    at_s: float
    sm_mhz: int | None
    memory_mhz: int | None
    power_w: float | None
    temperature_c: int | None
    throttle_reasons: int | None


@dataclass(frozen=True)
class Load:
    """The step repeated without the profiler for at least a second, with the clocks beside it: a steady state, where
    `Manifest.step_us` is a burst. `clocks_why` says why there are no clocks."""

    seconds: float
    step_us: Spread
    clocks: tuple[ClockSample, ...]
    clocks_why: str | None = None


@dataclass(frozen=True)
class Candidate:
    """A launch configuration that Inductor's tuner tried, with the time the tuner saw (not the kernel's true time)."""

    config: str
    tuner_us: float | None


@dataclass(frozen=True)
class TunedKernel:
    """One kernel of one compile: the configuration chosen, the candidates as the tuner saw them, and its true times,
    profiled afterwards. `chosen` is None where Inductor had nothing to choose from or did not say."""

    name: str
    chosen: str | None
    candidates: tuple[Candidate, ...]
    grid: str | None
    block: str | None
    true_us: Spread | None


@dataclass(frozen=True)
class Compile:
    """One cold compile: in which process ("fresh": one of its own, what a plain script sees; "first": the worker's first
    compile; "warm": a later one in the worker), how long in each stage, and what it chose. `kernel_time_us` is all kernel time of
    a step, profiled. `shown` marks the compile whose trace is the run's."""

    process: str
    cold: bool
    first_call_s: float
    stages_s: dict[str, float | None]
    kernels: tuple[TunedKernel, ...]
    kernel_time_us: Spread | None
    shown: bool = False
    graph_breaks: int | None = None


@dataclass(frozen=True)
class KernelSource:
    """Which operators a generated kernel computes, as Inductor's provenance tracking says."""

    kernel: str
    language: str
    aten_ops: tuple[str, ...]
    source_nodes: tuple[str, ...]


@dataclass(frozen=True)
class NumericError:
    """Difference from the same layer, weights and input in eager fp32. `relative` is ‖out − ref‖ / ‖ref‖.

    `of` names the tensor ("output", "gradient of gate.weight"); `finite` is False where it holds NaN or infinity, and
    then there are no differences."""

    of: str
    relative: float | None
    largest: float | None
    finite: bool = True


@dataclass(frozen=True)
class Process:
    """Another process on the GPU; memory in bytes where the driver tells."""

    pid: int
    memory_bytes: int | None


@dataclass(frozen=True)
class Failure:
    """Why a run has no result: a kind for programs, a sentence for people, a log for those who dig."""

    kind: str
    sentence: str
    log: str = ""

    @property
    def ended_process(self) -> bool:
        """Whether the process was lost with the run: a new one must not repeat such a call, or it would end as well."""
        return self.kind in ("crashed", "timed_out", "cuda_error")


@dataclass(frozen=True)
class Manifest:
    """One run. `status` is "ok", "unsettled" (the steps never held the same kernels) or "failed". `stages_s` says how long
    each stage of the run took, `seconds` the whole; `predicted` is what was expected of it before it began. `point` is set
    where the run is a point of a sweep: what its process compiled before shaped it."""

    id: str
    workload: Workload
    protocol: Protocol
    created: str
    status: str
    device: Device
    versions: dict[str, str | None]
    seconds: float
    format: int = FORMAT
    profile_attempts: int = 0
    settled_why: str | None = None
    window_clocks: tuple[ClockSample, ...] = ()
    step_us: Samples | None = None
    step_clocks: tuple[ClockSample, ...] = ()
    load: Load | None = None
    graph_replay_us: Samples | None = None
    graph_replay_why: str | None = None
    peak_memory_bytes: int | None = None
    other_processes: tuple[Process, ...] | None = None
    errors: tuple[NumericError, ...] = ()
    compiles: tuple[Compile, ...] = ()
    sources: tuple[KernelSource, ...] = ()
    predicted: Estimate | None = None
    failure: Failure | None = None
    notes: tuple[str, ...] = ()
    stages_s: dict[str, float] = field(default_factory=dict)
    point: Point | None = None

    @property
    def throttled(self) -> bool:
        """Whether the clocks were seen held down right before or after the profiled window."""
        return any(is_throttled(sample) for sample in self.window_clocks)

    @property
    def answers(self) -> bool:
        """Whether the run may be served as the answer to a new question: ok, not throttled, and no point of a sweep."""
        return self.status == "ok" and not self.throttled and self.point is None


def is_throttled(sample: ClockSample) -> bool:
    """Whether NVML named a reason that holds the clocks below what the chip would run at."""
    return bool((sample.throttle_reasons or 0) & THROTTLE_MASK)


def throttle_words(reasons: int) -> tuple[str, ...]:
    """NVML's throttle reasons in words; the idle reasons are left out, for they slow nothing that runs."""
    return tuple(words for bit, words in THROTTLE_REASONS.items() if reasons & bit)


def encode(manifest: Manifest) -> bytes:
    """The manifest as JSON."""
    return msgspec.json.encode(manifest)


def decode(data: bytes) -> Manifest:
    """The manifest from JSON. Raises ManifestError for what is not one, or is of a later format."""
    try:
        head: Any = msgspec.json.decode(data)
        found = head.get("format") if isinstance(head, dict) else None
        if isinstance(found, int) and found > FORMAT:
            raise ManifestError(
                f"This run was written in format {found}; this FusionScope reads up to {FORMAT}: update it."
            )
        return msgspec.json.decode(data, type=Manifest)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise ManifestError(
            f"The run's manifest cannot be read ({str(error)[:120]}); the file is damaged or not a run."
        ) from error
