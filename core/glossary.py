"""Every technical word that a screen shows, in one sentence each."""

from __future__ import annotations

GLOSSARY: dict[str, str] = {
    "kernel": "A function that runs on the GPU, by thousands of threads at once.",
    "launch": "The CPU call that puts a kernel into the GPU's queue; the kernel starts later, when its turn comes.",
    "stream": "A queue on the GPU: what is in one stream runs in order.",
    "lane": "One row of the timeline: operators nested on a CPU thread, launch calls, or one stream of a GPU.",
    "operator": "A PyTorch function such as aten::mm, run on the CPU; it checks shapes and launches kernels.",
    "dispatch": "The way from a PyTorch call down through its operators to the kernels they launch.",
    "step": "One call of the layer (with its backward pass, if picked), as the profiler marks it.",
    "gemm": "General matrix multiplication, the work of a linear layer.",
    "epilogue": "What a GEMM kernel does to its result before writing it, such as adding the bias: no second kernel.",
    "backend": "Who carries the layer out: PyTorch itself, code that torch.compile generates, or hand-written kernels.",
    "step time": "Time from one step to the next, without the profiler, in a burst of back-to-back steps.",
    "kernel time": "Sum of the times of all kernels of a step, as the profiler saw them; on Shapes with its fills and "
    "copies.",
    "work": "Sum of a step's kernels, copies and fills as the profiler saw them (of a CPU run: its operators); median over "
    "the profiled steps.",
    "gpu busy": "Share of a step in which at least one kernel, copy or fill ran; overlapping ones count once.",
    "gap": "Time between two pieces of GPU work in which the GPU had nothing to do.",
    "profiled": "Taken while the profiler ran, which makes the CPU side slower; kernels keep their true times.",
    "unprofiled": "Taken without the profiler, so that it shows what a user gets.",
    "cuda-graph replay": "The step captured once and replayed with a single launch: its time without the CPU launching "
    "each kernel.",
    "median": "The middle of the measured values: half of them are larger, half smaller.",
    "spread": "From the smallest to the largest measured value.",
    "n": "How many measurements a number stands on.",
    "cold compile": "A compile with empty caches, as on a new machine.",
    "compile lottery": "Inductor picks a kernel's launch configuration by rough timings, so two compiles of the same "
    "code can differ in speed.",
    "tuner": "The part of Inductor that times a few launch configurations at compile time and keeps the fastest it saw.",
    "fresh process": "A newly started Python: what a plain script sees. Its first timing carries one-time costs.",
    "warm worker": "A process that has compiled before.",
    "launch configuration": "How a kernel's work is cut: elements a block (XBLOCK), warps and stages.",
    "grid": "How many blocks of threads a kernel is launched with.",
    "block": "How many threads work together as one block.",
    "registers": "Fast storage of one thread; more of it means fewer threads at the same time.",
    "shared memory": "Fast storage that the threads of one block share.",
    "throttling": "The GPU holding its clocks down, for power or heat: a slower time that is not a slower kernel.",
    "peak memory": "The most device memory that PyTorch had allocated at once for the warm-up and the profiled steps, the "
    "workspace of cuBLAS included; where a point of a sweep does not tell that of its first calls apart, theirs counts, "
    "too.",
    "numeric error": "Distance from the same layer in eager fp32: ‖out − ref‖ / ‖ref‖.",
    "provenance": "Inductor's own record of which operators a generated kernel computes.",
    "family": "What kind of work a kernel does, told by its name; it gives the kernel its colour.",
    "share": "This kernel's part of all GPU time of the profiled steps.",
    "self time": "An operator's own time, without the operators it called.",
    "preset": "A named pick: the article's scripts, a layer's own sizes, or the MLP of a well-known model.",
    "role": "What a kernel does of the layer: gate, up, activation, down. In this chart colour tells it.",
    "prediction": "Computed before the run from FLOPs, bytes and what this device was seen to do, and held against what came.",
    "dtype": "The number format: bf16 and fp16 take 2 bytes a number, fp32 takes 4.",
    "passes": "Forward alone (inference), or forward and backward (a training step without the optimizer).",
    "recorded": "Measured earlier on the named machine and shipped with FusionScope.",
    "live": "Measured by this FusionScope, on the machine it runs on or the worker it is connected to.",
    "uploaded": "A run file that somebody put into this store by hand: measured elsewhere, on the machine it names.",
    "kept": "Held in the store: a kept run cannot be deleted until it is released.",
    "clocks": "The GPU's SM clock in MHz: a time without its clock is half a fact.",
    "sustained load": "The step repeated for over a second: clocks and heat settle, as a burst does not show.",
    "xblock": "How many elements one block of a generated Triton kernel works on.",
    "warp": "A group of 32 threads that run in lockstep.",
    "cupti": "NVIDIA's interface through which the profiler learns when each kernel started and ended; drivers can forbid it.",
    "nvml": "NVIDIA's library that tells a GPU's clocks, power, heat and processes, without disturbing what runs.",
    "triton": "A language for GPU kernels in Python, compiled when a kernel is first called.",
    "inductor": "The part of torch.compile that writes the code: Triton kernels for a GPU, C++ for a CPU.",
    "liger": "A library of hand-written Triton kernels for parts of language models.",
    "driver": "What the operating system talks to the GPU by; it must be new enough for the CUDA version of torch.",
    "launch call": "The launch's own time on the CPU: until the call returned, not until the kernel ran.",
    "launch latency": "From the start of the launch call to the start of the kernel, where the GPU had nothing else to do "
    "when the call began.",
    "overhead-bound": "The step takes as long as the CPU needs to launch its kernels; the GPU waits. A faster kernel "
    "changes nothing, fewer launches do.",
    "gpu-bound": "The step takes as long as the GPU needs for its work; the CPU is done launching earlier.",
    "profiled step": "From the start of one profiled step to the start of the next, on the side where the unprofiled "
    "step was taken.",
    "input shapes": "The sizes of each input of an operator, one bracket an input; [] is a number, a list or nothing.",
    "strides": "How many elements lie between neighbours along each dimension: a view changes them and moves no data.",
    "cpu total": "An operator's time on the CPU from its start to its end, with the operators it called.",
    "device time": "GPU time of the kernels, copies and fills that an operator launched.",
    "unsettled": "The profiled steps never all held the same kernels, so this run answers no question.",
    "sweep": "One layer called at a list of sizes, one after another, on several backends; every call is a run of its own.",
    "shared": "One process per backend lives through the whole list, so what earlier sizes compiled serves or fails later "
    "ones.",
    "isolated": "Every size starts in a fresh state, with nothing compiled before it: order plays no part.",
    "traffic": "The sizes of a log in their order, each weighted by how often it comes.",
    "primes": "Prime sizes fit no tile and no alignment, which is what they are for.",
    "ledger": "What each call compiled, reused or ran eager, why, and what that took.",
    "recompile": "Another compile of the same function, because no entry compiled earlier fits this call.",
    "reuse": "An entry compiled earlier serves the call, so nothing is compiled.",
    "guard": "A condition that compiled code was made under, such as a size; where one fails, the code must not run.",
    "cache entry": "One compiled version of a function with its guards; 0/1 is the first function's second version.",
    "dynamic shapes": "A size that compiled code leaves open: after a first change PyTorch stops fixing it, and other values "
    "need no new compile.",
    "specialisation premium": "What code made for one size gains over code that leaves the size open: static time against "
    "dynamic time of the same work.",
    "mark_dynamic": "Tells PyTorch beforehand that these sizes vary, so that the first compile leaves them open already.",
    "recompile limit": "How many versions of one function PyTorch keeps (8 unless set); past it every new size runs eager, "
    "without a word.",
    "graph break": "A place that Dynamo cannot capture: the function is cut there, and Python runs in between.",
    "recorded graph": "A CUDA graph that reduce-overhead recorded at this call: one for each size it meets.",
    "jit": "Triton compiles a hand-written kernel when it is first called with other constants.",
    "constexpr": "An argument that a Triton kernel is compiled for, so a new value means another compile.",
    "disk cache": "Compiled code that earlier processes left on disk; cold means empty, as on a new machine.",
    "break-even": "How many calls it takes until the time won at each call has paid for the seconds lost to compiling.",
    "padding": "Rows filled up to the next power of two: the lanes beyond the row's end do no work.",
    "win map": "Who is ahead at each pair of sizes, named only where repeated cold compiles agree beyond the noise.",
    "noise": "How far repeated measurements of the same thing lie apart; a difference within it is none.",
    "quartiles": "The middle half of the measured values lies between them.",
}


#: Rows that PyTorch itself puts into a profile, by how their names start.
_ROWS: tuple[tuple[str, str], ...] = (
    ("ProfilerStep#", "The profiler's mark around one step; it counts the steps it let pass as well."),
    (
        "TorchDynamo Cache Lookup",
        "Dynamo checks the guards of the code it compiled earlier, to see whether it fits this call.",
    ),
    (
        "Torch-Compiled Region",
        "Compiled code runs; 0/1 means the first function that Dynamo compiled, in its second version.",
    ),
    ("Pregraph bytecode", "Python that Dynamo kept in front of the compiled graph."),
    ("AOTDispatcher Runtime Wrapper", "AOTAutograd prepares the inputs of the compiled graph, at every call."),
    ("## Call CompiledFxGraph", "The code that Inductor generated runs and launches its kernels."),
    ("CompiledFunction", "The compiled graph as one step of autograd."),
    ("autograd::engine::evaluate_function", "Autograd runs one step of the backward pass."),
    ("torch::autograd::AccumulateGrad", "Autograd stores a gradient with its parameter."),
    ("Liger", "The Python function around a hand-written kernel: it prepares the launch, at every call."),
    ("aten::t", "A view: it swaps the strides of a matrix and moves no data."),
    ("aten::as_strided", "A view: it gives a tensor other strides and moves no data."),
    ("aten::_unsafe_view", "A view: it gives a tensor another shape and moves no data."),
    ("aten::view", "A view: it gives a tensor another shape and moves no data."),
    ("aten::reshape", "Another shape for the same data; it copies only where strides leave no other way."),
    ("aten::transpose", "A view: it swaps two strides and moves no data."),
    ("aten::empty", "Takes memory from PyTorch's allocator, and fills it with nothing."),
    ("aten::addmm", "A matrix product with a bias added, by one library kernel."),
    ("aten::mm", "A matrix product, by one library kernel."),
)


def explain_row(name: str) -> str | None:
    """The sentence for a row of a profile, None where it has none."""
    return next((sentence for start, sentence in _ROWS if name == start or _starts(name, start)), None)


def _starts(name: str, start: str) -> bool:
    return name.startswith(start) and not start.startswith("aten::")


def explain(word: str) -> str:
    """The sentence for a word. Raises KeyError for a word that has none, so that a test finds it."""
    return GLOSSARY[word.lower()]
