"""bound and profiled_step: verdicts with their numbers, and what the profiler adds."""

import pytest

from core.analysis.bound import Bound, ProfiledStep, bound, inflation_sentence, profiled_step, sentence
from core.analysis.spread import spread
from core.trace import read_trace
from tests.trace.build import annotation, kernel, launch, op, trace, two_steps


def taken(us):
    return None if us is None else spread([us])


@pytest.mark.parametrize(
    ("step", "busy", "replay", "verdict"),
    [
        (100.0, 74.0, None, "overhead-bound"),
        (100.0, 75.0, None, "between the two"),
        (100.0, 89.0, 50.0, "between the two"),
        (100.0, 90.0, None, "GPU-bound"),
        (100.0, 120.0, 50.0, "GPU-bound"),
        # gaps between many small kernels are no launching: a replay has them too
        (100.0, 60.0, 95.0, "GPU-bound"),
        (100.0, 60.0, 89.0, "overhead-bound"),
        # launching one tiny graph costs as much as launching its kernel
        (20.0, 2.0, 19.0, "overhead-bound"),
        (None, 2.0, 19.0, "unknown"),
        (20.0, None, 19.0, "unknown"),
    ],
)
def test_verdicts(step, busy, replay, verdict):
    found = bound(taken(step), taken(busy), taken(replay), 5)
    share = min(busy / step, 1.0) if step and busy else None
    assert found == Bound(verdict, step, busy, share, replay, 5)


@pytest.mark.parametrize(
    ("step", "busy", "replay", "kernels", "told"),
    [
        (92.1, 8.2, 10.4, 5, "Overhead-bound: a step takes 92.1 µs, the GPU work of its 5 kernels 8.2 µs (9%): the CPU "
         "cannot launch fast enough. Replayed as a CUDA graph it takes 10.4 µs."),
        (240.8, 232.3, None, 1, "GPU-bound: a step takes 240.8 µs, the GPU work of its 1 kernel 232.3 µs (96%): the CPU "
         "launches fast enough."),
        (100.0, 60.0, 95.0, None, "GPU-bound: a step takes 100.0 µs, its GPU work 60.0 µs (60%): the rest lies between "
         "kernels on the GPU itself, for sparing the launches gains little. Replayed as a CUDA graph it takes 95.0 µs."),
        (1000.0, 800.0, None, 9, "Between the two: a step takes 1,000.0 µs, the GPU work of its 9 kernels 800.0 µs (80%): "
         "the GPU waits for part of it, so faster launching and faster kernels would both help."),
        (None, 800.0, None, 9, "What binds the step is unknown, because the step without the profiler is."),
        (10.0, None, None, 9, "What binds the step is unknown, because the GPU's time is."),
    ],
)  # fmt: skip
def test_sentences(step, busy, replay, kernels, told):
    assert sentence(bound(taken(step), taken(busy), taken(replay), kernels)) == told


def test_the_profiled_step_on_both_sides():
    later = [annotation("ProfilerStep#2", 310, 80), launch(31, 320, 5), kernel("k", 31, 345, 5)]
    found = profiled_step(read_trace(trace(*two_steps(), *later)), 53.75)
    assert found == ProfiledStep(cpu_us=spread([100, 110]), gpu_us=spread([100, 115]), side="GPU", inflation=2.0)
    assert found.step_us == found.gpu_us
    assert inflation_sentence(found) == (
        "Under the profiler a step takes 2.0 times as long: it slows the CPU side down, and kernels keep their times."
    )


def test_steps_that_do_not_follow_each_other_or_hold_no_gpu_work_are_left_out():
    events = [annotation(f"ProfilerStep#{number}", at, 5) for number, at in ((0, 0), (1, 10), (3, 40), (4, 60))]
    work = [launch(1, 1, 1), kernel("k", 1, 2, 1), launch(2, 41, 1), kernel("k", 2, 43, 1)]
    found = profiled_step(read_trace(trace(*events, *work)), None)
    assert found == ProfiledStep(cpu_us=spread([10, 20]), gpu_us=None, side="GPU", inflation=None)
    assert inflation_sentence(found) == "How much the profiler slows the step down is unknown."


def test_a_cpu_run_is_compared_on_the_cpu():
    events = [annotation(f"ProfilerStep#{number}", 10 * number, 8) for number in range(3)]
    found = profiled_step(read_trace(trace(*events)), 10.0)
    assert found == ProfiledStep(cpu_us=spread([10, 10]), gpu_us=None, side="CPU", inflation=1.0)
    assert found.step_us == found.cpu_us
    slower = profiled_step(read_trace(trace(*events)), 5.0)
    assert (
        inflation_sentence(slower) == "Under the profiler a step takes 2.0 times as long: it slows the CPU side down."
    )
    assert inflation_sentence(found) == "The profiler does not slow this step down (1.00 times the unprofiled step)."


def test_no_steps():
    assert profiled_step(read_trace(trace(op("a", 1, 1))), 10.0) == ProfiledStep(None, None, "CPU", None)
