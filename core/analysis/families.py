"""Which family a GPU kernel belongs to, told by its name."""

import re
from functools import lru_cache

FAMILIES: tuple[tuple[str, str, str], ...] = (
    ("gemm", "Matrix product", "A matrix multiplication from a library (cuBLAS, CUTLASS, Tensile) or a template."),
    ("fused", "Fused by Inductor", "A kernel that torch.compile generated to do several operators' work in one pass."),
    ("liger", "Liger", "A hand-written Triton kernel of the Liger-Kernel library."),
    ("triton", "Other Triton", "A kernel named like a hand-written Triton function that no other rule knows."),
    ("elementwise", "Elementwise", "An eager PyTorch kernel that computes each element from those at its place."),
    ("reduction", "Reduction", "A kernel that sums, averages or otherwise reduces over a dimension."),
    ("norm", "Normalisation", "Layer, batch, group or RMS normalisation, forward or backward."),
    ("softmax", "Softmax", "Softmax or log-softmax, forward or backward."),
    ("attention", "Attention", "A fused attention kernel (FlashAttention, memory-efficient attention and the like)."),
    ("conv", "Convolution", "A convolution or one of its helpers from cuDNN or its kin."),
    ("copy", "Copy", "A copy: Memcpy, a layout or type change, or a concatenation."),
    ("fill", "Fill", "Memory set to one value: Memset or a fill kernel."),
    ("collective", "Collective", "Communication between GPUs (NCCL, RCCL)."),
    ("other", "Other", "A kernel that no rule knows."),
)  # fmt: skip

_FAMILY_OF_KIND = {"memcpy": "copy", "memset": "fill"}

# The first rule that matches wins. Inductor's names come early: they hold the names of the operators they fused.
_RULES: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (key, re.compile(pattern))
    for key, pattern in (
        ("gemm", r"^triton_(?:tem_fused_.*_|tem_fused_|)(?:addmm|baddbmm|bmm|mm)(?:_|$)"),
        ("attention", r"^triton_tem_.*attention"),
        ("fused", r"^triton_(?:poi|per|red|for|mix|tem|split_scan)_|cpp_fused"),
        ("liger", r"^_(?:geglu_(?:tanh|exact)|swiglu|sparsemax|softmax\w*)_(?:forward|backward)_kernel"),
        ("liger", r"^_(?:(?:block_)?rms_norm|layer_norm|group_norm|poly_norm)_(?:forward|backward)_kernel"),
        ("liger", r"^(?:liger_\w+|_triton_rope|_jsd_kernel|_kldiv_kernel_\w+|_dyt_\w+_kernel|_tv_distance_kernel)$"),
        ("collective", r"(?i)nccl|rccl|all_?reduce|all_?gather|reduce_?scatter"),
        ("attention", r"(?i)flash_(?:fwd|bwd|attn|splitkv)|\bfmha|fmha_|sdpa|attn_(?:fwd|bwd)|attention"),
        ("norm", r"(?i)(?:batch|layer|group|rms|instance)_?norm|\bbn_(?:fw|bw)_|GammaBeta|RowwiseMoments"),
        ("softmax", r"(?i)softmax"),
        ("conv", r"(?i)cudnn|miopen|convol|conv\dd|winograd|wgrad|dgrad|fprop"),
        ("gemm", r"(?i)nvjet|cublas|gemm|gemv|cutlass|^Cijk_|^bmm_|splitKreduce"),
        ("copy", r"direct_copy|CatArray|multi_tensor_apply_kernel.*\bCopy<|^Memcpy"),
        ("fill", r"FillFunctor|^Memset"),
        ("reduction", r"reduce_kernel|_reduce_cuda|Device(?:Segmented)?Reduce"),
        ("elementwise", r"elementwise|multi_tensor_apply_kernel|fused_dropout"),
        ("triton", r"^(?=[^_]*_)[a-z_][a-z0-9_]*$"),
    )
)  # fmt: skip


@lru_cache(maxsize=65_536)
def family(kernel_name: str, kind: str = "kernel") -> str:
    """The key (see FAMILIES) of a kernel; kind is that of the event: kernel, memcpy or memset."""
    if kind in _FAMILY_OF_KIND:
        return _FAMILY_OF_KIND[kind]
    return next((key for key, pattern in _RULES if pattern.search(kernel_name)), "other")


# What an operator of a CPU run computes itself; one that only calls others is told by none of these.
_OPERATOR_RULES: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (key, re.compile(pattern))
    for key, pattern in (
        ("fused", r"cpp_fused"),
        ("gemm", r"^(?:aten|mkldnn|mkl)::_?(?:addmm|mm|bmm|baddbmm|linear_pointwise|_mkl_linear)$"),
        ("softmax", r"^aten::_?(?:log_)?softmax"),
        ("norm", r"^aten::\w*norm"),
        ("attention", r"^aten::\w*attention"),
        ("copy", r"^aten::(?:copy_|cat|contiguous|clone)$"),
        ("fill", r"^aten::(?:fill_|zero_)$"),
        ("reduction", r"^aten::(?:sum|mean|amax|max|min)$"),
        ("elementwise", r"^aten::(?:gelu|silu|relu|mul|add|sub|div|tanh|sigmoid|pow)(?:_|_backward)?$"),
    )
)


@lru_cache(maxsize=65_536)
def operator_family(name: str) -> str:
    """The key of the work that a CPU operator does itself; "op" where its name does not tell."""
    return next((key for key, pattern in _OPERATOR_RULES if pattern.search(name)), "op")


# What a C++ kernel template applies: the part of its long name that tells it from its siblings.
_APPLIES = re.compile(
    r"\b(\w*(?:Functor\w*|_functor|Ops|KernelImpl|kernel_impl|kernel_cuda|Epilogue)|\w+_kernel(?=[(<])|Copy(?=<))"
)
_WRAPPERS = re.compile(r"(?:A|B)?UnaryFunctor|BinaryFunctor|UnaryOpFunctor|gpu_kernel_impl\w*|CUDAFunctor")


def short_name(name: str) -> str:
    """A C++ template's name by the template and what it applies: "vectorized_elementwise_kernel<…MulFunctor>"; others as
    they are."""
    outer, bracket, rest = name.partition("<")
    if not bracket or not name.startswith("void "):
        return name
    inner = next((one for one in _APPLIES.findall(rest) if not _WRAPPERS.fullmatch(one)), None)
    base = outer.rpartition("::")[2] or outer
    return f"{base}<…{inner}>" if inner else f"{base}<…>"


# What each spelling of a GEMM's name says: a pattern, and phrases that are used when all their groups were matched.
_GEMM_SPELLINGS: tuple[tuple[re.Pattern[str], tuple[str, ...]], ...] = (
    (
        re.compile(
            r"nvjet(?:_sm(?P<sm>\d+))?_[a-z]+_(?P<tile>\d+x\d+)_(?P<k>\d+)x(?P<stages>\d+)_(?P<cluster>\d+x\d+)"
            r"(?:_[a-zA-Z0-9]+?)*?(?P<bias>_bias)?(?:_(?P<layout>[NT]{2,3}))?$"
        ),
        (
            "architecture sm{sm}",
            "tile {tile}",
            "K-block {k} by {stages} stages",
            "cluster {cluster}",
            "bias added in the epilogue{bias:.0}",
            "layout letters {layout}",
        ),
    ),
    (
        re.compile(
            r"(?P<arch>volta|turing|ampere|ada|hopper)_(?:(?P<inputs>bf16|fp16|h|s|d|i|c|z)_?)?"
            r"(?:[a-z]?(?P<instruction>16816|1688|884))?gemm_(?:(?:bf16|fp16|fp32)_)?(?P<tile>\d+x\d+)"
            r"(?:_(?!stages)[a-z0-9]+?)*?(?:_stages_(?P<k>\d+)x(?P<stages>\d+))?_(?P<layout>[nt]{2})$"
        ),
        (
            "architecture {arch}",
            "tensor-core instruction {instruction}",
            "tile {tile}",
            "K-block {k} by {stages} stages",
            "layout {layout} (n: as stored, t: transposed)",
        ),
    ),
    (
        re.compile(
            r"cutlass_(?P<sm>\d+)_(?:tensorop|simt|wmma_tensorop)_\w*?gemm_(?:[a-z0-9]+_)*?(?P<tile>\d+x\d+)"
            r"_(?P<k>\d+)x(?P<stages>\d+)_(?P<layout>[nt]{2})"
        ),
        (
            "architecture sm{sm}",
            "tile {tile}",
            "K-block {k} by {stages} stages",
            "layout {layout} (n: as stored, t: transposed)",
        ),
    ),
    (
        re.compile(r"sm(?P<sm>\d+)_xmma_gemm_.*?tilesize(?P<tile>\d+x\d+)x(?P<k>\d+)_stage(?P<stages>\d+)"),
        ("architecture sm{sm}", "tile {tile}", "K-block {k} by {stages} stages"),
    ),
    (
        re.compile(r"Cijk_A(?P<a>[a-z]+)_B(?P<b>[a-z]+)_.*?MT(?P<tile>\d+x\d+)x(?P<k>\d+)"),
        ("tile {tile}", "K-block {k}", "index order of the operands A{a}, B{b}"),
    ),
)  # fmt: skip
_PLACE = re.compile(r"{(\w+)")


def decode_gemm_name(name: str) -> str | None:
    """One sentence with what can be read off the name of a GEMM kernel, None when nothing can."""
    for pattern, phrases in _GEMM_SPELLINGS:
        match = pattern.search(name)
        if match:
            found = {key: value for key, value in match.groupdict().items() if value}
            known = [phrase.format(**found) for phrase in phrases if set(_PLACE.findall(phrase)) <= found.keys()]
            return f"The name says: {', '.join(known)}."
    return None
