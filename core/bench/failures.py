"""Failures that are results: what went wrong as a kind, a sentence that says what to do, and a log."""

from __future__ import annotations

import traceback

from core.store.manifest import Failure

#: (words in the exception's text or type, kind, sentence). The first match names the failure.
_KNOWN: tuple[tuple[tuple[str, ...], str, str], ...] = (
    (
        (
            "OutOfMemoryError",
            "out of memory",
            "not enough memory",
            "DefaultCPUAllocator",
            "can't allocate memory",
            "CUBLAS_STATUS_ALLOC_FAILED",
        ),
        "out_of_memory",
        "The device ran out of memory at these sizes; choose smaller ones.",
    ),
    (
        ("InvalidCxxCompiler", "No working C++ compiler", "CppCompileError"),
        "no_compiler",
        "torch.compile found no working C++ compiler on this machine; install g++ (Debian: apt-get install g++) or "
        "choose the eager backend.",
    ),
    (
        ("NotCompiledError",),
        "not_compiled",
        "PyTorch skipped compiling here and would have run eager; choose another number format (a GPU older than Ampere "
        "compiles no bf16) or the eager backend.",
    ),
    (
        ("Failed to find C compiler", "Python.h: No such file"),
        "no_compiler",
        "Triton found no C compiler or no Python headers on this machine; install gcc and python3-dev, or choose the eager "
        "backend.",
    ),
    (
        ("GPUTooOldForTriton", "no kernel image is available", "not compatible with the current PyTorch installation"),
        "gpu_too_old",
        "This GPU is too old for what is installed here; choose the eager backend, or an older PyTorch.",
    ),
    (
        ("recommended Triton blocksize", "exceeds maximum supported size", "doesn't support feature dim"),
        "too_wide",
        "Liger's kernels take rows of at most 65,536 columns; choose a smaller width or another backend.",
    ),
    (
        ("0 active drivers", "driver must be loaded", "no NVIDIA driver"),
        "no_gpu",
        "Liger's Triton kernels need a GPU, and this machine has none that Triton can use; choose another backend.",
    ),
    (
        ("not implemented for 'Half'", "not implemented for 'BFloat16'", "not supported for dtype"),
        "unsupported_dtype",
        "This device has no kernel for that dtype; choose fp32.",
    ),
    (
        ("CUDA error", "AcceleratorError", "an illegal memory access", "device-side assert"),
        "cuda_error",
        "The GPU reported an error and its context is lost; a new worker is started, so run it again or choose other "
        "sizes.",
    ),
)


def describe(error: BaseException) -> Failure:
    """The failure an exception stands for. Never raises."""
    text = f"{type(error).__name__}: {error}"
    log = "".join(traceback.format_exception(error))
    for words, kind, sentence in _KNOWN:
        if any(word in text for word in words):
            return Failure(kind, sentence, log)
    first_line = (str(error).strip().splitlines() or [""])[0][:160]
    return Failure(
        "unexpected", f"The run stopped with {type(error).__name__} ({first_line}); the log below has the rest.", log
    )
