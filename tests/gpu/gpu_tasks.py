"""A target for the engine that loses its CUDA context in the middle of a run."""

import torch

from core.bench import run, tasks


def lose_context(payload, report):
    """A run whose measuring reads far outside a tensor on the device."""

    def measure(*args):
        torch.zeros(1, device="cuda")[torch.tensor([1 << 20], device="cuda")].sum().item()

    run._measure = measure
    return tasks.run_workload(payload, report)
