"""Cross-entropy over a vocabulary: what a language model's last step costs beside its matrix products."""

from __future__ import annotations

from typing import Any

from core.layers import rows
from core.layers.spec import Flags, Layer, Preset, Sizes


def build(sizes: Sizes, flags: Flags, dtype: Any, device: str) -> tuple[Any, tuple[Any, ...]]:
    """The mean loss of logits (batch * seq, vocabulary) against as many targets."""
    import torch

    class CrossEntropy(torch.nn.Module):
        def forward(self, logits: Any, target: Any) -> Any:
            return torch.nn.functional.cross_entropy(logits, target)

    rows_in_all = sizes["batch"] * sizes["seq"]
    logits = torch.randn(rows_in_all, sizes["vocabulary"], dtype=dtype, device=device)
    target = torch.randint(sizes["vocabulary"], (rows_in_all,), device=device)
    return CrossEntropy(), (logits, target)


def build_liger(sizes: Sizes, flags: Flags, dtype: Any, device: str) -> tuple[Any, tuple[Any, ...]]:
    """The same loss in Liger's Triton kernel."""
    import torch
    from liger_kernel.ops import LigerCrossEntropyFunction

    class LigerCrossEntropy(torch.nn.Module):
        def forward(self, logits: Any, target: Any) -> Any:
            # Where gradients are wanted, the kernel writes them over the logits, which every step reads again: it is
            # given a copy, whose kernel counts as a copy and not as the loss.
            own = logits.clone() if logits.requires_grad else logits
            return LigerCrossEntropyFunction.apply(own, target, None)[0]

    rows_in_all = sizes["batch"] * sizes["seq"]
    logits = torch.randn(rows_in_all, sizes["vocabulary"], dtype=dtype, device=device)
    target = torch.randint(sizes["vocabulary"], (rows_in_all,), device=device)
    return LigerCrossEntropy(), (logits, target)


LAYER = Layer(
    name="cross_entropy",
    title="Cross-entropy",
    description="log-softmax over a vocabulary and the loss of the right token. In training Liger's kernel works on a copy "
    "of the logits here, for it writes the gradient over them.",
    label="cross_entropy",
    sizes=rows.sizes("vocabulary", "Vocabulary", 32000, "Tokens the model knows: logits of a row."),
    build=build,
    cost=rows.cost("vocabulary", vectors=0, passes=3, output=False, eager_tensors=1),
    roles=rows.roles("loss", "The whole layer: log-softmax of each row and the loss of its token."),
    twins={"liger": build_liger},
    presets=(Preset("cross_entropy", "Cross-entropy, 32000 tokens"),),
)
