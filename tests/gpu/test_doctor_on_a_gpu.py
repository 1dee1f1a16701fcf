"""The doctor on a real GPU: every check is carried out there, and leaves the device as it was."""

import pytest

from core.health import in_order

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(300)]


def test_every_check_is_in_order_and_the_device_is_left_empty():
    import torch

    from core.bench import doctor

    torch.zeros(1, device="cuda")
    before_bytes = torch.cuda.memory_allocated()
    for _ in range(2):  # the second time in a warm process: Triton and Inductor must compile again
        found = {check.name: check for check in doctor.examine(lambda *said: None, "a test").checks}
        told = "\n".join(
            f"{check.state} {check.name}: {check.found}\n{check.log}" for check in in_order(found.values())
        )
        assert {check.state for name, check in found.items() if name not in ("GPU memory", "GPU clocks")} == {"ok"}, (
            told
        )
        assert "compute capability" in found["Device"].found
        assert "kernels of 3 matrix products came back" in found["Profiler"].found
        assert "compiled cold" in found["Triton"].found
        assert "differs from plain torch by" in found["Liger"].found
        assert found["CUDA graphs"].found.endswith("replayed 50 times")
        assert "MHz" in found["GPU clocks"].found
        assert torch.cuda.memory_allocated() <= before_bytes
        assert torch.cuda.memory_reserved() <= 4_000_000
