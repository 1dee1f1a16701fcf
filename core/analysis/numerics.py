"""Whether a run computed what the layer says: its distance from eager fp32 against what its number format explains."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

#: Largest relative distance (‖out − ref‖ / ‖ref‖) that rounding explains, by number format. Half precision rounds each
#: number by up to 2^-9 (bf16) or 2^-12 (fp16); a few roundings one after the other stay well below these.
TOLERANCES = {"bf16": 2e-2, "fp16": 3e-3, "fp32": 1e-4}


@dataclass(frozen=True)
class Difference:
    """One tensor beside its fp32 reference, as a manifest holds it. `relative` is None where it is unknown."""

    of: str
    relative: float | None
    finite: bool


def mismatch(differences: Sequence[Difference], dtype: str) -> str | None:
    """What is wrong with a run's results, in a sentence; None where rounding explains every distance that is known."""
    broken = [one.of for one in differences if not one.finite]
    if broken:
        return f"The {broken[0]} holds NaN or infinity: this run did not compute the layer, whatever its speed."
    known = [(one.relative, one.of) for one in differences if one.relative is not None]
    if not known:
        return None
    worst, of = max(known)
    if worst <= TOLERANCES[dtype]:
        return None
    return (
        f"The {of} is {worst:.3g} away from eager fp32, more than the {TOLERANCES[dtype]:g} that {dtype} explains: this "
        "run did not compute the layer, whatever its speed."
    )
