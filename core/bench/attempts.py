"""From PyTorch's compilation metrics and trace records to the attempts of the ledger. Pure: it reads what was observed."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from core.analysis.ledger import RECOMPILE_LIMIT, Attempt, DimName, GuardMiss

#: What closes the records of one compile: the trace says it right after the metrics are complete.
_CLOSING = (
    "compilation_metrics",
    "bwd_compilation_metrics",
    "compilation_metrics_runtime",
    "bwd_compilation_metrics_runtime",
)
_ENTRY = re.compile(r"^(\d+/\d+): (.*)", re.S)
_LIMIT = re.compile(r"exceeding the (\w+) cache size limit|hit config\.(\w+)")
#: Lines of the guard tree that hold further guards and check nothing by themselves.
_INNER_GUARDS = ("GuardManager", "RootGuardManager", "DictGuardManager", "TREE_GUARD", "Guard latency", "WEAKREF",
                 "KeyValueManager", "KeyManager", "ValueManager", "DictSubclass", "FrameLocals")  # fmt: skip
#: Dynamo wraps a layer of torch.nn, and then calls its inputs args[0], args[1] and its weights those of fn.
_CHECKED = re.compile(r"check_tensor\(L\['(\w+)'\](?:\[(\d+)\])?, .*?size=\[([^\]]*)\]")
_GUARD_CHARACTERS = 400

Records = Sequence[tuple[dict[str, Any], str | None]]


def attempts(records: Records, metrics: Sequence[Any], dims: Sequence[DimName]) -> tuple[Attempt, ...]:
    """One row a compile, in the order in which they ended. `metrics` are PyTorch's CompilationMetrics of the observed call,
    `dims` the names of the inputs' dimensions.

    Generated files are numbered as `Observation.code` names them.
    """
    found: list[Attempt] = []
    group: list[tuple[dict[str, Any], str | None]] = []
    groups: list[list[tuple[dict[str, Any], str | None]]] = []
    files = 0
    for metadata, payload in records:
        if any(key in metadata for key in _CLOSING):
            groups.append(group)
            group = []
        else:
            group.append((metadata, payload))
    groups += [[] for _ in range(len(metrics) - len(groups))]
    for metric, own in zip(metrics, groups, strict=False):
        count = sum(1 for metadata, payload in own if "inductor_output_code" in metadata and payload)
        code = tuple(f"inductor_{files + index}.py" for index in range(count))
        files += count
        if not getattr(metric, "is_runtime", False):
            found.append(_attempt(metric, own, dims, code))
    return tuple(found)


def _attempt(metric: Any, records: Records, dims: Sequence[DimName], code: tuple[str, ...]) -> Attempt:
    backward = getattr(metric, "is_forward", None) is False
    failed = getattr(metric, "fail_type", None)
    reason = str(getattr(metric, "fail_reason", None) or "")
    limit = _LIMIT.search(reason)
    told = _artifacts(records)
    guards = _guards(told.get("guards", ""))
    words = _reasons(told.get("recompile_reasons")) or _reasons(getattr(metric, "recompile_reason", None))
    return Attempt(
        entry=str(getattr(metric, "compile_id", None) or "unknown"),
        backward=backward,
        ok=not failed and (backward or bool(getattr(metric, "has_guarded_code", True))),
        misses=tuple(_miss(one) for one in words),
        dynamic_dims=_dynamic(guards, dims),
        guard_count=getattr(metric, "guard_count", None),
        guards=guards,
        stages_s=_stages(metric, backward),
        disk_cache=told.get("disk_cache"),
        failed=(reason.strip().splitlines() or [str(failed)])[0][:200] if failed else None,
        limit=(limit[1] or limit[2]) if limit else RECOMPILE_LIMIT if failed == "FailOnRecompileLimitHit" else None,
        code=code,
    )


def graph_breaks(records: Records) -> tuple[str, ...]:
    """The reason of each graph break among the records, its first line."""
    found = []
    for metadata, payload in records:
        artifact = metadata.get("artifact")
        name = artifact.get("name") if isinstance(artifact, dict) else None
        if name == "dynamo_graph_break_reason" or "dynamo_graph_break_reason" in metadata:
            found.append(((payload or "").strip().splitlines() or [""])[0][:200])
    return tuple(found)


def _artifacts(records: Records) -> dict[str, str]:
    told: dict[str, str] = {}
    for metadata, payload in records:
        artifact = metadata.get("artifact")
        name = str(artifact.get("name")) if isinstance(artifact, dict) else ""
        if name == "recompile_reasons":
            told[name] = payload or ""
        elif name.startswith("fx_graph_cache_"):
            told["disk_cache"] = name.removeprefix("fx_graph_cache_")
        elif "dynamo_cpp_guards_str" in metadata:
            told["guards"] = payload or ""
    return told


def _reasons(payload: str | None) -> tuple[str, ...]:
    """Dynamo's reasons: a JSON list of texts, or one text."""
    if not payload:
        return ()
    try:
        read = json.loads(payload)
    except ValueError:
        return (payload,)
    return tuple(str(one) for one in read) if isinstance(read, list) else (str(read),)


def _miss(words: str) -> GuardMiss:
    found = _ENTRY.match(words)
    return GuardMiss(found[1], found[2].strip()) if found else GuardMiss(None, words.strip())


def _guards(text: str) -> tuple[str, ...]:
    lines = (line.strip(" |+-") for line in text.splitlines())
    return tuple(line[:_GUARD_CHARACTERS] for line in lines if ":" in line and not line.startswith(_INNER_GUARDS))


def _dynamic(guards: Sequence[str], dims: Sequence[DimName]) -> tuple[DimName, ...]:
    """The input dimensions that the tensor guards leave open."""
    names = {(one.tensor, one.dim): one for one in dims}
    inputs = list(dict.fromkeys(one.tensor for one in dims if not one.tensor.startswith("self")))
    found = []
    for guard in guards:
        checked = _CHECKED.search(guard)
        if checked is None:
            continue
        tensor, number = checked[1], checked[2]
        if number is not None and tensor == "args" and int(number) < len(inputs):
            tensor = inputs[int(number)]
        for at, size in enumerate(checked[3].split(",")):
            if size.strip() == "None":
                found.append(names.get((tensor, at), DimName(tensor, at, "")))
    return tuple(dict.fromkeys(found))


def _stages(metric: Any, backward: bool) -> dict[str, float | None]:
    """Seconds of each stage without those inside it; "total" is the whole."""
    total = _seconds(metric, "backward_cumulative_compile_time_us" if backward else "dynamo_cumulative_compile_time_us")
    aot = _seconds(metric, "aot_autograd_cumulative_compile_time_us")
    inductor = _seconds(metric, "inductor_cumulative_compile_time_us")
    kernels = _seconds(metric, "triton_compile_time_us")
    if backward:
        return {"total": total, "inductor": _less(inductor, kernels), "kernel_compile": kernels}
    return {
        "total": total,
        "dynamo": _less(total, aot) if aot is not None else None,
        "aot_autograd": _less(aot, inductor) if inductor is not None else None,
        "inductor": _less(inductor, kernels),
        "kernel_compile": kernels,
    }


def _seconds(metric: Any, name: str) -> float | None:
    found = getattr(metric, name, None)
    return None if found is None else round(found / 1e6, 4)


def _less(whole: float | None, part: float | None) -> float | None:
    return None if whole is None else round(max(whole - (part or 0.0), 0.0), 4)
