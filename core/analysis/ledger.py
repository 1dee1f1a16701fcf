"""The ledger of a sweep: what one call at one size compiled, reused or ran eager, and what its steps took.

Plain values that the worker fills, the manifest of a point keeps, and the analysis reads. None always means "unknown".
"""

from __future__ import annotations

from dataclasses import dataclass, field

from core.analysis.spread import Spread

#: What hitting the limit is called in `Call.limit`, as PyTorch names its setting.
RECOMPILE_LIMIT = "recompile_limit"


@dataclass(frozen=True)
class DimName:
    """Which size of the layer a dimension holds: `tensor` as Dynamo names it after L['...'] ("x",
    "self._modules['gate']._parameters['weight']"), `size` the layer's size ("batch"), or several joined by " · "."""

    tensor: str
    dim: int
    size: str


@dataclass(frozen=True)
class GuardMiss:
    """One compiled entry that could not serve a call: the entry ("0/1") and Dynamo's own words for the failed guard."""

    entry: str | None
    words: str


@dataclass(frozen=True)
class Attempt:
    """One compile that a call set off, as PyTorch's compilation metrics and trace records tell it.

    `entry` is Dynamo's compile id ("0/1": frame 0, its second compile), `backward` whether it compiled the backward graph,
    `ok` whether guarded code came of it; `failed` is the first line of what it said otherwise, and `limit` the setting that
    turned it off. `misses` are the older entries that did not fit; empty where there were none or Dynamo gave no reason.
    `dynamic_dims` are input dimensions that became symbolic. `stages_s` holds seconds in "dynamo", "aot_autograd",
    "inductor", "kernel_compile" (Triton or C++), "backward" and "total". `disk_cache` is "hit", "miss" or "bypass".
    `code` names its generated files in the run file. Where dimensions are dynamic, PyTorch compiles the backward graph
    together with the forward one: one attempt then stands for both, with two files.
    """

    entry: str
    backward: bool
    ok: bool
    misses: tuple[GuardMiss, ...] = ()
    dynamic_dims: tuple[DimName, ...] = ()
    guard_count: int | None = None
    guards: tuple[str, ...] = ()
    stages_s: dict[str, float | None] = field(default_factory=dict)
    disk_cache: str | None = None
    failed: str | None = None
    limit: str | None = None
    code: tuple[str, ...] = ()


@dataclass(frozen=True)
class Jit:
    """One JIT compile of a hand-written Triton kernel: its name, its constexpr arguments, and seconds (None: unknown)."""

    kernel: str
    constexprs: dict[str, str]
    seconds: float | None


@dataclass(frozen=True)
class Call:
    """What the first call at one point of a sweep set off.

    `first_call_s` is its wall time, compiling included. `served_by` are the entries whose compiled code ran in the profiled
    steps right after ("0/1"), () where none did, None where nothing was profiled. `ran_eager` says that a compiling
    backend ran no compiled code although the call went through. `limit` is RECOMPILE_LIMIT where that is why: the limit was
    hit in this call or an earlier one of the same process. `graph_breaks` are the reasons of the first call,
    `cuda_graphs` how many CUDA graphs PyTorch recorded at this point, with `graph_calls_s` the wall times of the calls after
    the first that recorded them or prepared to (() where none was recorded), `jits` what Triton compiled for hand-written
    kernels.
    """

    first_call_s: float
    attempts: tuple[Attempt, ...] = ()
    served_by: tuple[str, ...] | None = None
    ran_eager: bool = False
    limit: str | None = None
    graph_breaks: tuple[str, ...] | None = None
    cuda_graphs: int | None = None
    graph_calls_s: tuple[float, ...] = ()
    jits: tuple[Jit, ...] | None = None

    @property
    def compiles(self) -> tuple[Attempt, ...]:
        """The compiles that produced code, forward and backward."""
        return tuple(one for one in self.attempts if one.ok)

    @property
    def compiled_forward(self) -> bool:
        """Whether the call compiled its forward graph: what is counted as a compile or recompile."""
        return any(not one.backward for one in self.compiles)


@dataclass(frozen=True)
class PointKernel:
    """One kernel of a point's profiled steps (of a CPU run: one working operator): `role` is the layer's role that it does,
    `time_us` its single launches, and `per_step` how many there are a step."""

    name: str
    role: str
    family: str
    grid: str | None
    block: str | None
    per_step: float
    time_us: Spread


@dataclass(frozen=True)
class Products:
    """The matrix products of a point on a GPU, a yardstick of the device: `kernels` are their (role, kernel name) pairs in
    order (() where a name does not say which code it is), `role_us` what each role takes a step, by its median."""

    kernels: tuple[tuple[str, str], ...]
    role_us: tuple[tuple[str, float], ...]

    @property
    def time_us(self) -> float:
        """What they take together."""
        return sum(us for _, us in self.role_us)


@dataclass(frozen=True)
class PointFacts:
    """One measured point of a sweep: a backend at one position of the list (`index`), in one round.

    `values` are the sizes along the sweep's axes. `count` is how often the traffic calls this size (1 elsewhere). `order` is
    when it was measured. `step_us` is the unprofiled step. `role_us` is the time of each role a step. `failure` is the
    sentence why there are no times; a failed point may still have a call. `clocks_mhz` are the SM clock's readings around
    the profile, `step_clocks_mhz` those while the unprofiled steps ran (() where nobody read them); `doubt` says in words
    why its times must not be set beside others (None where they may be), and `beside_others` that other sweeps were measured
    in turns with it, sharing the CPU. `peak_memory_bytes` is that of its steps, and of its first calls, too, where
    `first_call_memory_bytes` is None. `dims` says which size each dimension of the call's tensors holds. `products` is None
    where a matrix product was not timed steadily, on a GPU. `measured_later` says that it was measured again after later
    points of its list, which never lived with this call. `step_ends_us` are the medians of the first and the last fifth of
    the burst that `step_us` sums up (None where it is too short to tell).
    """

    run_id: str
    series: str
    index: int
    round: int
    order: int
    values: tuple[int, ...]
    count: int
    on_gpu: bool
    device: str
    call: Call | None = None
    kernels: tuple[PointKernel, ...] = ()
    kernel_time_us: Spread | None = None
    role_us: dict[str, Spread] = field(default_factory=dict)
    step_us: Spread | None = None
    step_how: str | None = None
    peak_memory_bytes: int | None = None
    first_call_memory_bytes: int | None = None
    clocks_mhz: tuple[int, ...] = ()
    doubt: str | None = None
    worst_error: float | None = None
    failure: str | None = None
    failure_kind: str | None = None
    dims: tuple[DimName, ...] = ()
    beside_others: bool = False
    products: Products | None = None
    measured_later: bool = False
    step_clocks_mhz: tuple[int, ...] = ()
    step_ends_us: tuple[float, float] | None = None


@dataclass(frozen=True)
class SeriesFacts:
    """All measured points of one backend in a sweep, by index, then round. `compiles`, `fuses` and `dynamic` (the backend's
    dynamic= argument; None also where it is left to PyTorch) are the backend's own."""

    name: str
    title: str
    compiles: bool
    fuses: bool
    dynamic: bool | None
    points: tuple[PointFacts, ...]

    def at(self, index: int) -> tuple[PointFacts, ...]:
        """The rounds measured at one position of the list."""
        return tuple(one for one in self.points if one.index == index)
