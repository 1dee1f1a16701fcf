"""Roles of a step's work, and what several runs say together, from traces built by hand."""

from dataclasses import replace

from core.analysis.prediction import predictions
from core.analysis.remarks import remarks
from core.analysis.roles import role_times, work
from core.analysis.spread import spread
from core.analysis.stack import Setting, counted, gaps_of_the_profiler, one_step, stacked_run, unlike
from core.layers import LAYERS
from core.trace import read_trace
from tests.runs import trace_bytes

MLP = next(layer for layer in LAYERS if layer.name == "geglu_mlp").roles
GEMM, OTHER_GEMM = "nvjet_sm90_tst_256x128_64x4_1x2_h_bz_coopA_TNT", "nvjet_sm90_tst_192x128_64x5_1x2_h_bz_coopB_TNT"
EAGER = [(GEMM, 50), ("void at::native::vectorized_elementwise_kernel<gelu>", 30), (GEMM, 50),
         ("void at::native::vectorized_elementwise_kernel<mul>", 40), (OTHER_GEMM, 50)]  # fmt: skip
FUSED = [(GEMM, 50), (GEMM, 50), ("triton_poi_fused_gelu_mul_0", 35), (OTHER_GEMM, 50)]


def tables(kernels, steps=2, *, backward=(), gap=0):
    """Steps that launch these (name, µs) kernels one after the other; `backward` ones below autograd's engine."""
    events, correlation = [], 0
    for step in range(steps):
        at = 10_000 * step
        cpu = {"ph": "X", "pid": 1, "tid": 1}
        events.append({**cpu, "cat": "user_annotation", "name": f"ProfilerStep#{step + 2}", "ts": at, "dur": 9_000})
        engine = {**cpu, "tid": 2, "cat": "cpu_op", "name": "autograd::engine::evaluate_function: MmBackward0"}
        events += [{**engine, "ts": at + 500, "dur": 400}] if backward else []
        gpu_at = at + 1_000
        for index, (name, us) in enumerate((*kernels, *backward)):
            correlation += 1
            late = index >= len(kernels)
            thread, start = (2, at + 500 + index) if late else (1, at + 10 + index)
            launch = {**cpu, "tid": thread, "cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": start, "dur": 0.5}
            events.append({**launch, "args": {"correlation": correlation}})
            kind = "gpu_memcpy" if name.startswith("Memcpy") else "kernel"
            work_of = {"ph": "X", "pid": 0, "tid": 7, "cat": kind, "name": name, "ts": gpu_at, "dur": us}
            events.append({**work_of, "args": {"correlation": correlation, "device": 0, "stream": 7}})
            gpu_at += us + gap
    return read_trace(trace_bytes(events))


def run(title, kernels, *, step_us=(200.0, 210.0), fuses=False, more=None, **setting):
    known = {"device": "NVIDIA H200", "versions": "torch 2.11", "on_gpu": True, "clocks_mhz": (1980, 1980)} | setting
    return stacked_run(
        title,
        tables(kernels, **(more or {})),
        MLP,
        setting=Setting(**known),
        fuses=fuses,
        step_us=spread(step_us),
        replay_us=None,
    )


def roles_of(kernels, **more):
    found = role_times(work(tables(kernels, **more), MLP, on_gpu=True), MLP)
    return {one.role.name: (one.per_step, one.time_us.median, one.time_us.n) for one in found}


def test_matrix_products_take_their_roles_in_order_and_the_rest_is_the_activation():
    assert roles_of(EAGER) == {
        "gate": (1.0, 50.0, 2),
        "up": (1.0, 50.0, 2),
        "activation": (2.0, 70.0, 2),
        "down": (1.0, 50.0, 2),
    }
    assert roles_of(FUSED)["activation"] == (1.0, 35.0, 2)


def test_copies_and_the_backward_pass_have_roles_of_their_own():
    found = roles_of(
        [*EAGER, ("Memcpy DtoD (Device -> Device)", 15)], backward=((GEMM, 60), ("void mul_kernel<x>", 20))
    )
    assert found["copy"] == (1.0, 15.0, 2)
    assert found["backward_matmul"] == (1.0, 60.0, 2)
    assert found["backward_other"] == (1.0, 20.0, 2)
    assert found["down"] == (1.0, 50.0, 2)


def test_a_change_of_format_is_the_layers_own_work_and_a_graphs_input_copy_is_not():
    cast, inputs = "void at::native::direct_copy_kernel_cuda<x>", "void multi_tensor_apply_kernel<Copy<float>>"
    found = roles_of([(inputs, 5), (cast, 10), *FUSED])
    assert (found["copy"], found["activation"]) == ((1.0, 5.0, 2), (2.0, 45.0, 2))
    step = one_step(run("x", [(inputs, 5), *FUSED]), 0)
    assert counted(step, "kernel") == ("4 kernels", "1 copy")


def test_more_matrix_products_than_roles_stay_with_the_last():
    assert roles_of([(GEMM, 10)] * 5)["down"] == (3.0, 30.0, 2)


def test_a_step_starts_at_its_first_work_and_knows_the_spread_of_each_piece():
    step = one_step(run("Eager", EAGER, more={"gap": 5}), 1)
    assert step["start_us"].tolist() == [0, 55, 90, 145, 190]
    assert step[["dur_us", "median_us", "min_us", "max_us", "n"]].iloc[1].tolist() == [30, 30, 30, 30, 2]
    assert len(one_step(run("Eager", EAGER), 99)) == 5, "the last step where there are fewer"


def test_the_remarks_are_computed_from_the_runs():
    one, two, three = remarks([run("Eager", EAGER), run("torch.compile", FUSED, step_us=(180.0,))], MLP)
    assert (
        one
        == "The 3 matrix products run as the same kernels everywhere (150.0 µs a step); gate and up share one kernel."
    )
    assert two == ("Activation: Eager 2 kernels (70.0 µs); torch.compile 1 kernel (35.0 µs).")
    assert three == (
        "32% of Eager's GPU work is no matrix product: the part that fusing works on. torch.compile has the least GPU work "
        "a step, 185.0 µs; Eager the most, 220.0 µs: 16% less. The whole step, unprofiled, is shortest on torch.compile, "
        "180.0 µs."
    )


def test_other_kernels_and_another_winner_by_step_time_are_told():
    other = [(OTHER_GEMM, 40), *FUSED[1:]]
    one, _, three = remarks([run("Eager", EAGER), run("Liger", other, step_us=(300.0,))], MLP)
    assert one.startswith("The 3 matrix products run as other kernels on Liger than on Eager (140.0 to 150.0 µs")
    assert "The whole step, unprofiled, is shortest on Eager, 205.0 µs (Liger: 300.0 µs)" in three


def test_compiles_far_apart_are_told_beside_the_one_that_is_shown():
    compiled = replace(run("torch.compile", FUSED), draws_us=(37.0, 55.6, 6))
    assert "35.0 µs here; 37.0 to 55.6 µs over its 6 cold compiles" in remarks([run("Eager", EAGER), compiled], MLP)[1]


def test_a_front_runner_that_another_compile_would_overtake_is_told():
    hand = [(GEMM, 50), (GEMM, 50), ("_geglu_tanh_forward_kernel", 38), (OTHER_GEMM, 50)]
    compiled = replace(run("torch.compile", FUSED), draws_us=(35.0, 56.0, 6))
    three = remarks([run("Eager", EAGER), compiled, run("Liger", hand)], MLP)[2]
    assert (
        "torch.compile and Liger have the least GPU work a step, 185.0 to 188.0 µs, no difference beyond the noise"
        in three
    )
    assert "In the slowest of its compiles torch.compile would take 206.0 µs, behind Liger." in three


def test_unlike_devices_clocks_and_software_are_told_and_then_nobody_is_the_fastest():
    eager, slow = run("Eager", EAGER), run("Liger", FUSED, clocks_mhz=(1620, 1620))
    assert unlike([eager, slow]) == (
        "The clocks differ: Liger ran at 1,620 MHz, Eager at 1,980 MHz. A slower clock is not a slower kernel.",
    )
    assert remarks([eager, slow], MLP)[-1].endswith("Their clocks differ, so none of them is called the fastest.")
    older = run("Liger", FUSED, versions="torch 2.4")
    assert unlike([eager, older]) == (
        "The software differs: torch 2.11; torch 2.4. Part of a difference may be theirs.",
    )
    elsewhere = run("torch.compile", FUSED, device="CPU")
    assert "different devices" in unlike([eager, elsewhere])[0]
    assert remarks([eager, elsewhere], MLP) == ()
    assert unlike([eager, run("x", FUSED)]) == ()


def test_a_run_in_doubt_is_named_and_compared_with_nobody():
    eager, doubtful = run("Eager", EAGER), run("Liger", FUSED, held_down="held down by power cap")
    assert unlike([eager, doubtful]) == (
        "Liger: compared with none of the others, for the clocks were held down by power cap.",
    )
    assert remarks([eager, doubtful], MLP) == ()
    three = remarks([eager, doubtful, run("torch.compile", FUSED)], MLP)[2]
    assert "Liger" not in three and "torch.compile has the least GPU work" in three


def test_a_fused_base_has_no_share_that_fusing_works_on():
    three = remarks([run("torch.compile", FUSED, fuses=True), run("Liger", FUSED, fuses=True)], MLP)[2]
    assert three.startswith("The GPU work of a step is alike within 3% (185.0 µs).")


def test_work_that_waits_for_launches_is_told():
    three = remarks([run("Eager", EAGER, step_us=(300.0,)), run("x", FUSED, step_us=(301.0,))], MLP)[2]
    assert three.endswith("x waits for launches: the GPU works for 61% of its step.")
    busy = remarks([run("Eager", EAGER, step_us=(221.0,)), run("x", FUSED, step_us=(221.0,))], MLP)[2]
    assert "waits" not in busy, "a GPU-bound step waits for none"


def test_the_same_products_at_other_times_are_other_clocks_and_nobody_is_the_fastest():
    slower = [(name, us * 1.1 if "nvjet" in name else us) for name, us in FUSED]
    three = remarks([run("Eager", EAGER), run("x", slower)], MLP)[2]
    assert three.endswith(
        "The same matrix products took 150.0 to 165.0 µs, so the clocks moved within the profiles, and none of the runs is "
        "called the fastest."
    )


def test_steps_that_vary_widely_or_ran_slower_are_not_compared():
    wide = run("x", FUSED, step_us=(180.0, 181.0, 400.0, 401.0))
    assert (
        "The unprofiled steps are not compared: those of x vary widely" in remarks([run("Eager", EAGER), wide], MLP)[2]
    )


def test_with_a_backward_pass_all_but_the_products_is_compared():
    more = {"backward": ((GEMM, 60), ("void mul_kernel<x>", 20))}
    one, two, _ = remarks([run("Eager", EAGER, more=more), run("x", FUSED, more=more)], MLP)
    assert one.startswith("The 3 forward matrix products run as the same kernels everywhere")
    assert two == (
        "All but the matrix products, both passes: Eager 3 pieces of work (90.0 µs); x 2 pieces of work (55.0 µs)."
    )


def test_a_clock_that_moves_around_the_profile_is_a_doubt():
    assert Setting("d", "v", True, clocks_mhz=(1980, 1560)).doubt == (
        "the clock went between 1,560 and 1,980 MHz around the profile"
    )
    assert Setting("d", "v", True, clocks_mhz=(1980, 1965)).doubt is None


def test_a_kernels_spread_is_that_of_the_same_kernel_in_every_step():
    found = one_step(run("x", EAGER), 0)
    assert found.groupby("name")["n"].unique().map(list).to_dict() == {name: [2] for name, _ in EAGER}
    lost = run("x", EAGER)
    missing = lost.work[~((lost.work["step"] == 3) & (lost.work["name"] == GEMM))]
    step = one_step(replace(lost, work=missing), 0)
    assert step[["name", "n"]].to_numpy().tolist() == [[name, 1 if name == GEMM else 2] for name, _ in EAGER]


def test_operators_that_call_operators_count_once_on_a_cpu():
    cpu = {"ph": "X", "pid": 1, "tid": 1}
    events = [
        {**cpu, "cat": "user_annotation", "name": "ProfilerStep#2", "ts": 0, "dur": 900},
        {**cpu, "cat": "cpu_op", "name": "aten::layer_norm", "ts": 100, "dur": 50},
        {**cpu, "cat": "cpu_op", "name": "aten::native_layer_norm", "ts": 105, "dur": 40},
        {**cpu, "cat": "cpu_op", "name": "aten::view", "ts": 200, "dur": 9},
    ]
    found = work(read_trace(trace_bytes(events)), MLP, on_gpu=False)
    assert found[["name", "dur_ns", "role"]].to_numpy().tolist() == [["aten::layer_norm", 50_000, "activation"]]


def test_a_step_stretched_by_the_profiler_is_told():
    assert gaps_of_the_profiler([run("Eager", EAGER, step_us=(221.0,))], 0) is None
    told = gaps_of_the_profiler([run("Liger", FUSED, more={"gap": 100}, step_us=(200.0,))], 0)
    assert "Liger reaches over 485 µs here and takes 200 µs unprofiled" in told


def test_predictions_stand_beside_what_came():
    found = predictions(
        work_us=100.0, peak_bytes=10, compile_s=2.0, measured_work_us=110.0, measured_peak_bytes=None,
        measured_compile_s=1.0,
    )  # fmt: skip
    assert [(one.what, one.unit, one.factor) for one in found] == [
        ("Device work a step", "us", 1.1), ("Peak memory", "bytes", None), ("Compiling", "s", 0.5),
    ]  # fmt: skip
