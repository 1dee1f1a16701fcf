"""What each generated kernel computes, in the operators a reader knows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

_NODES_MAX = 8
#: Operators that only look at a tensor in another way, and compute nothing.
_VIEWS = frozenset({"view", "_unsafe_view", "reshape", "permute", "t", "transpose", "expand", "squeeze", "unsqueeze"})


@dataclass(frozen=True)
class Fused:
    """One generated kernel: what it computes, and the results of library kernels that it reads."""

    kernel: str
    computes: tuple[str, ...]
    reads: tuple[str, ...]
    lowered: tuple[str, ...]


def fused(sources: Iterable[tuple[str, str, tuple[str, ...], tuple[str, ...]]]) -> tuple[Fused, ...]:
    """From (kernel, language, aten operators, source nodes) of every kernel; extern ones are library kernels.

    A node that a library kernel computes is not the generated kernel's own, though Inductor names it among its origins:
    the generated kernel reads its result, or, where it comes last, prepares its input. Backward graphs (known by comments
    in the code alone, with operators like "aten.gelu" that name no overload) number their nodes, so there the operators
    are told.
    """
    known = list(sources)
    library = {node for _, language, _, nodes in known if language == "extern" for node in nodes}
    found = []
    for kernel, language, operators, nodes in known:
        if language == "extern":
            continue
        lowered = tuple(dict.fromkeys(operators))
        own = tuple(node for node in nodes if node not in library)
        plain = tuple(name for name in (_plain(operator) for operator in lowered) if name not in _VIEWS)
        told_by_comment = all(operator.count(".") == 1 for operator in operators)
        if own and len(nodes) <= _NODES_MAX and not told_by_comment:
            last = max(index for index, node in enumerate(nodes) if node not in library)
            found.append(Fused(kernel, own, tuple(node for node in nodes[:last] if node in library), lowered))
        else:
            found.append(Fused(kernel, tuple(dict.fromkeys(plain)), (), lowered))
    return tuple(found)


def _plain(operator: str) -> str:
    """ "gelu" of "aten.gelu.default"."""
    return operator.split(".")[1] if "." in operator else operator
