"""What was predicted of a run before it began, beside what came."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Prediction:
    """One predicted quantity in `unit` ("us", "bytes", "s") and what was measured; None where that is unknown."""

    what: str
    unit: str
    predicted: float
    measured: float | None

    @property
    def factor(self) -> float | None:
        """How many times the predicted value came, None where either says nothing."""
        return self.measured / self.predicted if self.measured is not None and self.predicted > 0 else None


def predictions(
    *,
    work_us: float | None,
    peak_bytes: int,
    compile_s: float | None,
    measured_work_us: float | None,
    measured_peak_bytes: int | None,
    measured_compile_s: float | None,
) -> tuple[Prediction, ...]:
    """The rows of a comparison; a quantity that was not predicted has none."""
    found = [
        Prediction("Device work a step", "us", work_us, measured_work_us) if work_us is not None else None,
        Prediction("Peak memory", "bytes", peak_bytes, measured_peak_bytes),
        Prediction("Compiling", "s", compile_s, measured_compile_s) if compile_s else None,
    ]
    return tuple(one for one in found if one is not None)
