"""What the cold compiles of a run say together: how far apart the same code came out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from core.analysis.spread import Spread


@dataclass(frozen=True)
class KernelDraws:
    """One generated kernel over all cold compiles: (process, configuration, median true µs) of each, in order."""

    kernel: str
    draws: tuple[tuple[str, str | None, float], ...]

    @property
    def fastest_us(self) -> float:
        """The best compile's median."""
        return min(us for _, _, us in self.draws)

    @property
    def slowest_us(self) -> float:
        """The worst compile's median."""
        return max(us for _, _, us in self.draws)

    @property
    def range_text(self) -> str:
        """From the best to the worst compile, with how many there were."""
        return f"{self.fastest_us:.1f}–{self.slowest_us:.1f} µs, {len(self.draws)} compiles"

    @property
    def configurations(self) -> int:
        """How many different launch configurations were chosen."""
        return len({config for _, config, _ in self.draws})


def draws_by_kernel(found: Sequence[tuple[str, str, str | None, Spread | None]]) -> tuple[KernelDraws, ...]:
    """From (kernel, process, configuration, true time) of every kernel of every compile; unknown times are left out."""
    kernels: dict[str, list[tuple[str, str | None, float]]] = {}
    for kernel, process, config, true_us in found:
        if true_us is not None:
            kernels.setdefault(kernel, []).append((process, config, true_us.median))
    return tuple(KernelDraws(kernel, tuple(draws)) for kernel, draws in kernels.items())


def sentence(kernel: KernelDraws) -> str:
    """What the draws say, in words."""
    n = len(kernel.draws)
    if n == 1:
        return f"One cold compile, {kernel.fastest_us:.1f} µs: an anecdote until there are more."
    if all(config is None for _, config, _ in kernel.draws):
        return f"{kernel.fastest_us:.1f} to {kernel.slowest_us:.1f} µs over {n} cold compiles; what Inductor chose is unknown."
    if kernel.configurations <= 1:
        return (
            f"{n} cold compiles of {n} chose the same launch configuration: {kernel.fastest_us:.1f} to "
            f"{kernel.slowest_us:.1f} µs."
        )
    by_process = []
    for process in dict.fromkeys(process for process, _, _ in kernel.draws):
        times = [us for name, _, us in kernel.draws if name == process]
        by_process.append(f"{process} {', '.join(f'{us:.1f}' for us in times)} µs")
    return (
        f"The same code came out at {kernel.fastest_us:.1f} or {kernel.slowest_us:.1f} µs, by the launch configuration "
        f"that the tuner picked in {n} cold compiles ({'; '.join(by_process)})."
    )


def range_over_compiles(draws: Sequence[KernelDraws], kernels: Sequence[str]) -> tuple[float, float, int] | None:
    """Smallest and largest median time in µs of the one generated kernel among `kernels` over the cold compiles, and their
    number; None where there is none of them, or more than one."""
    own = [one for one in draws if one.kernel in kernels]
    return (own[0].fastest_us, own[0].slowest_us, len(own[0].draws)) if len(own) == 1 else None
