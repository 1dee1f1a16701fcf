"""The one module that touches private PyTorch APIs: what torch.compile did, seen from inside, and cuBLAS's workspaces.

Every reading degrades to "unknown" (None or empty) where a PyTorch version lacks the name it stands on; the names used
here exist in torch 2.11 and 2.13.
"""

from __future__ import annotations

import contextlib
import json
import logging
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from core.store.manifest import Candidate, KernelSource

#: Metric fields (microseconds) by the stage's name. Dynamo's own share is the total less the rest.
_STAGES = {
    "dynamo_total": "dynamo_cumulative_compile_time_us",
    "aot_autograd": "aot_autograd_cumulative_compile_time_us",
    "inductor": "inductor_cumulative_compile_time_us",
    "kernel_compile": "triton_compile_time_us",
    "backward": "backward_cumulative_compile_time_us",
}
_METRICS_KEPT = 4096
_ORIGINAL_ATEN = re.compile(r"Source Nodes: \[(.*?)\], Original ATen: \[(.*?)\]")
_TRITON_DEFINITION = re.compile(r"^(\w+) = async_compile\.triton\(", re.M)
_CPP_DEFINITION = re.compile(r"^(cpp_fused\w*) = async_compile\.cpp", re.M)
_POST_GRAD_NODE = re.compile(
    r"^\s*(\w+): .*? = (?:torch\.ops\.)?((?:aten|prims|higher_order|inductor)\.[\w.]+)\(", re.M
)


@dataclass(frozen=True)
class Tuning:
    """What the tuner of one Triton kernel saw: the chosen configuration and every candidate's time."""

    kernel: str
    chosen: str | None
    candidates: tuple[Candidate, ...]


@dataclass
class Observation:
    """Filled while `observe` is open."""

    stages_s: dict[str, float | None] = field(default_factory=dict)
    tunings: list[Tuning] = field(default_factory=list)
    sources: list[KernelSource] = field(default_factory=list)
    code: dict[str, str] = field(default_factory=dict)
    graph_breaks: int | None = None
    records: list[tuple[dict[str, Any], str | None]] = field(default_factory=list)
    metrics: list[Any] = field(default_factory=list)


def keep_all_metrics() -> None:
    """Lets PyTorch remember every compile of this process: it forgets all but the last 64."""
    limit = getattr(torch._dynamo.utils, "set_compilation_metrics_limit", None)
    if limit is not None:
        limit(_METRICS_KEPT)


@contextlib.contextmanager
def recompile_limit(limit: int | None) -> Iterator[None]:
    """At most that many compiled entries a function, None for PyTorch's own limit."""
    import torch._dynamo.config as dynamo_config

    with dynamo_config.patch({} if limit is None else {"recompile_limit": limit}):
        yield


def mark_dynamic(tensor: torch.Tensor, dim: int) -> None:
    """Tells Dynamo that this dimension varies; compiling fails where the model fixes it."""
    torch._dynamo.mark_dynamic(tensor, dim)


@contextlib.contextmanager
def counting_cuda_graphs() -> Iterator[Callable[[], int | None]]:
    """Counts the CUDA graphs that torch.compile records inside; call what is yielded for the count so far, None where this
    PyTorch does not tell."""
    from torch._inductor import cudagraph_trees

    node = getattr(cudagraph_trees, "CUDAGraphNode", None)
    if node is None:
        yield lambda: None
        return
    original, count = node.__init__, 0

    def counted(self: Any, *args: Any, **kwargs: Any) -> None:
        nonlocal count
        count += 1
        original(self, *args, **kwargs)

    node.__init__ = counted
    try:
        yield lambda: count
    finally:
        node.__init__ = original


def clear_workspaces() -> None:
    """Frees what cuBLAS holds for each stream it was ever used on: it would count as memory of the next run.

    Without that API the memory stays, and so does the count.
    """
    clear = getattr(torch._C, "_cuda_clearCublasWorkspaces", None)
    if clear is not None:
        clear()


def fresh_generator() -> None:
    """Gives the GPU's random generator a new state: a capture that failed leaves the old one believing that it goes on."""
    generator = torch.cuda.default_generators[torch.cuda.current_device()]
    new = torch.Generator(device=generator.device)
    new.manual_seed(generator.initial_seed())
    set_state = getattr(generator, "graphsafe_set_state", None)
    if set_state is not None:
        set_state(new.graphsafe_get_state())


@contextlib.contextmanager
def cold() -> Iterator[None]:
    """Empty disk caches and no compiled code in the process, for as long as the context is open."""
    from torch._inductor.utils import fresh_cache

    torch.compiler.reset()
    with fresh_cache():
        yield


@contextlib.contextmanager
def compiling_in_process() -> Iterator[None]:
    """Kernels are compiled one after the other in this process: for one kernel that takes half of what the pool takes."""
    import torch._inductor.config as inductor_config

    with inductor_config.patch({"compile_threads": 1} if _has(inductor_config, "compile_threads") else {}):
        yield


@contextlib.contextmanager
def observe() -> Iterator[Observation]:
    """Watches what is compiled inside. The observation is complete once the context is left."""
    seen = Observation()
    records = _Records()
    logger = logging.getLogger("torch.__trace")
    logger.addHandler(records)
    metrics_before = _metrics()
    try:
        with _config(), _tuner(seen.tunings):
            yield seen
    finally:
        logger.removeHandler(records)
    _read_records(records.taken, seen)
    _add_single_candidates(seen)
    old = {id(metric) for metric in metrics_before}
    seen.metrics = [one for one in _metrics() if id(one) not in old]
    seen.records = records.taken
    seen.stages_s = _stages(seen.metrics)


@contextlib.contextmanager
def _config() -> Iterator[None]:
    import torch._inductor.config as inductor_config

    # Both only add records beside the code: provenance maps kernels to operators, the C++ flag makes kernels visible.
    patches = {"trace.provenance_tracking_level": 1, "cpp.enable_kernel_profile": True}
    known = {name: value for name, value in patches.items() if _has(inductor_config, name)}
    with inductor_config.patch(known):
        yield


def _has(config: Any, dotted: str) -> bool:
    for part in dotted.split("."):
        if not hasattr(config, part):
            return False
        config = getattr(config, part)
    return True


@contextlib.contextmanager
def _tuner(tunings: list[Tuning]) -> Iterator[None]:
    try:
        from torch._inductor.runtime.triton_heuristics import CachingAutotuner
    except ImportError:  # no Triton on this machine: nothing is tuned
        yield
        return
    original = getattr(CachingAutotuner, "benchmark_all_configs", None)
    if original is None:
        yield
        return

    def watched(self: Any, *args: Any, **kwargs: Any) -> Any:
        timings = original(self, *args, **kwargs)
        with contextlib.suppress(AttributeError, TypeError, ValueError):
            tunings.append(_tuning(self, timings))
        return timings

    CachingAutotuner.benchmark_all_configs = watched
    try:
        yield
    finally:
        CachingAutotuner.benchmark_all_configs = original


def _tuning(tuner: Any, timings: dict[Any, float]) -> Tuning:
    finite = {launcher: ms for launcher, ms in timings.items() if ms != float("inf")}
    chosen = min(finite, key=finite.__getitem__) if finite else None
    return Tuning(
        kernel=_kernel_name(tuner),
        chosen=None if chosen is None else _config_text(chosen.config),
        candidates=tuple(
            Candidate(_config_text(launcher.config), None if ms == float("inf") else round(ms * 1e3, 3))
            for launcher, ms in timings.items()
        ),
    )


def _kernel_name(tuner: Any) -> str:
    return str(tuner.inductor_meta.get("kernel_name") or tuner.fn.__name__)


def _config_text(config: Any) -> str:
    blocks = ", ".join(f"{name} {value}" for name, value in config.kwargs.items() if name.isupper())
    return f"{blocks}, {config.num_warps} warps, {config.num_stages} stages"


def _add_single_candidates(seen: Observation) -> None:
    """Kernels with one candidate never reach the tuner; their configuration still stands in the generated module."""
    try:
        from torch._inductor.codecache import PyCodeCache
        from torch._inductor.runtime.triton_heuristics import CachingAutotuner
    except ImportError:
        return
    tuned = {tuning.kernel for tuning in seen.tunings}
    defined = {name for source in seen.code.values() for name in _TRITON_DEFINITION.findall(source)}
    for module in reversed(getattr(PyCodeCache, "modules", [])):
        for name in sorted((defined - tuned) & set(vars(module))):
            tuner = vars(module)[name]
            launchers = getattr(tuner, "launchers", [])
            if isinstance(tuner, CachingAutotuner) and len(launchers) == 1:
                seen.tunings.append(Tuning(name, _config_text(launchers[0].config), ()))
                tuned.add(name)


class _Records(logging.Handler):
    """Keeps PyTorch's structured trace records, as TORCH_TRACE would write them."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.taken: list[tuple[dict[str, Any], str | None]] = []

    def emit(self, record: logging.LogRecord) -> None:
        metadata = getattr(record, "metadata", None)
        if isinstance(metadata, dict):
            self.taken.append((metadata, getattr(record, "payload", None)))


def _read_records(taken: list[tuple[dict[str, Any], str | None]], seen: Observation) -> None:
    breaks, post_grad = 0, ""
    for metadata, payload in taken:
        artifact = metadata.get("artifact")
        name = artifact.get("name") if isinstance(artifact, dict) else None
        if name == "dynamo_graph_break_reason" or "dynamo_graph_break_reason" in metadata:
            breaks += 1
        elif "inductor_post_grad_graph" in metadata or name == "inductor_post_grad_graph":
            post_grad = payload or ""
        elif "inductor_output_code" in metadata and payload:
            seen.code[f"inductor_{len(seen.code)}.py"] = payload
        elif name == "inductor_provenance_tracking_node_mappings" and payload:
            seen.sources += _provenance(json.loads(payload), post_grad)
    if taken:
        seen.graph_breaks = breaks
    known = {source.kernel for source in seen.sources}
    for code in seen.code.values():  # the mapping is empty for backward graphs; Triton kernels carry a comment there
        seen.sources += [source for source in _commented(code) if source.kernel not in known]
        # The comments beside C++ kernels are wrong, so what those of a backward graph compute stays unknown.
        seen.sources += [KernelSource(n, "cpp", (), ()) for n in _CPP_DEFINITION.findall(code) if n not in known]


def _provenance(mapping: dict[str, Any], post_grad: str) -> list[KernelSource]:
    """Kernels from the artifact's cppCodeToPost ("kernel:n" -> post-grad nodes) and postToPre (-> source nodes)."""
    operator_of = dict(_POST_GRAD_NODE.findall(post_grad))
    order = {node: index for index, node in enumerate(operator_of)}
    found = []
    for key, nodes in mapping.get("cppCodeToPost", {}).items():
        kernel = key.rpartition(":")[0] or key
        ordered = sorted(nodes, key=lambda node: order.get(node, len(order)))
        origins = dict.fromkeys(origin for node in ordered for origin in mapping.get("postToPre", {}).get(node, []))
        language = "triton" if kernel.startswith("triton_") else "cpp" if kernel.startswith("cpp_") else "extern"
        operators = tuple(operator_of.get(node, node) for node in ordered)
        found.append(KernelSource(kernel, language, operators, tuple(origins)))
    return found


def _commented(code: str) -> list[KernelSource]:
    """Triton kernels by the comment that stands before their definition."""
    found, comment = [], ("", "")
    for line in code.splitlines():
        match = _ORIGINAL_ATEN.search(line)
        definition = _TRITON_DEFINITION.match(line)
        if match:
            comment = (match[1], match[2])
        elif definition:
            found.append(KernelSource(definition[1], "triton", _names(comment[1]), _names(comment[0])))
            comment = ("", "")
    return found


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _metrics() -> list[Any]:
    read: Callable[[], list[Any]] | None = getattr(torch._dynamo.utils, "get_compilation_metrics", None)
    return list(read()) if read else []


def _stages(metrics: Sequence[Any]) -> dict[str, float | None]:
    new = [one for one in metrics if not getattr(one, "is_runtime", False)]
    stages: dict[str, float | None] = {}
    for stage, attribute in _STAGES.items():
        values = [value for metric in new if (value := getattr(metric, attribute, None)) is not None]
        stages[stage] = round(sum(values) / 1e6, 4) if values else None
    return stages
