"""Whether every step of a run did the same: a profile that missed kernels must not be believed."""

from collections import Counter

import numpy as np

from core.analysis.groups import enclosing, names_of, step_annotations
from core.trace import GPU_WORK, Tables, column, kind_mask

_SHOWN_CHARACTERS = 80


def step_signatures(tables: Tables) -> dict[int, tuple[str, ...]]:
    """Per step the names of its kernels by start; of its leaf ops where the trace has no GPU work at all."""
    events = tables.events
    rows = np.flatnonzero(_counted(tables))
    step = column(events, "step")[rows]
    return {number: tuple(names_of(tables, rows[step == number])) for number in step_annotations(tables)}


def settled(tables: Tables, expected_steps: int) -> tuple[bool, str]:
    """(whether each of the expected steps holds the same kernels, a sentence saying so or what differs).

    Their order may differ: streams run side by side.
    """
    unit = "kernel" if _has_gpu_work(tables) else "op"
    held = {number: Counter(names) for number, names in step_signatures(tables).items()}
    if not held:
        return False, "The trace holds no steps."
    if len(held) != expected_steps:
        return False, f"The trace holds {_count(len(held), 'step')} where {expected_steps} were expected."
    usual, _ = Counter(tuple(sorted(names.elements())) for names in held.values()).most_common(1)[0]
    if not usual:
        return False, f"Most steps hold no {unit} at all."
    for number, names in held.items():
        missing, extra = Counter(usual) - names, names - Counter(usual)
        if missing or extra:
            differences = [_told(some, word) for some, word in ((missing, "missing"), (extra, "extra")) if some]
            what = f"{_count(names.total(), unit)} where the others hold {len(usual)}"
            return False, f"Step {number} holds {what}: {'; '.join(differences)}."
    if expected_steps == 1:
        return True, f"The only step holds {_count(len(usual), unit)}."
    return True, f"All {expected_steps} steps hold the same {_count(len(usual), unit)}."


def _has_gpu_work(tables: Tables) -> bool:
    return bool(kind_mask(tables.events, *GPU_WORK).any())


def _counted(tables: Tables) -> np.ndarray:
    if _has_gpu_work(tables):
        return kind_mask(tables.events, "kernel")
    is_op = kind_mask(tables.events, "op")
    above = enclosing(column(tables.events, "parent"), is_op)[is_op]
    is_leaf = is_op.copy()
    is_leaf[above[above >= 0]] = False
    return is_leaf


def _count(n: int, unit: str) -> str:
    return f"{n} {unit}{'' if n == 1 else 's'}"


def _told(names: Counter[str], word: str) -> str:
    first, n = next(iter(names.items()))
    text = (first if len(first) <= _SHOWN_CHARACTERS else f"{first[:_SHOWN_CHARACTERS]}…") + (
        f" ({n} times)" if n > 1 else ""
    )
    if len(names) == 1:
        return f"{text} is {word}"
    return f"{text} and {len(names) - 1} more are {word}"
