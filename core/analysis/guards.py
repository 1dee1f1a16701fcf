"""Why a compiled entry could not serve a call: Dynamo's words for the failed guard, put plainly."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from core.analysis.ledger import DimName, GuardMiss
from core.analysis.wording import size_name

NO_REASON = "Dynamo gave no reason"
_SHOWN = 110
_LOCAL = re.compile(r"\b[LG]\['(\w+)'\]")
_SIZE = re.compile(
    r"tensor '(?P<tensor>.+?)' (?P<what>size|stride) mismatch at index (?P<dim>\d+)\. expected (?P<made>\d+), "
    r"actual (?P<now>\d+)"
)
_TENSOR = r"(?P<tensor>[\w.]+(?:\[(?:'[^']+'|\d+)\][\w.]*)*)"
_BOUND = re.compile(rf"(?:(?P<low>\d+) <= )?{_TENSOR}\.size\(\)\[(?P<dim>\d+)\](?: <= (?P<high>\d+))?$")
_EQUAL = re.compile(rf"{_TENSOR}\.size\(\)\[(?P<dim>\d+)\] == (?P<made>\d+)$")
_MODULE = re.compile(r"_modules\['([^']+)'\]")
_PARAMETER = re.compile(r"_parameters\['([^']+)'\]")
# A module of PyTorch's own is compiled through a wrapper fn(*args): its inputs and itself have other names there.
_WRAPPED_INPUT = re.compile(r"args(?:\[(\d+)\])?$")


@dataclass(frozen=True)
class Reason:
    """Why `entry` could not serve a call: `dynamo` in Dynamo's own words, `plain` in ours. Where these were not understood,
    `plain` holds Dynamo's, shortened, and says so."""

    entry: str | None
    dynamo: str
    plain: str
    is_understood: bool


def reason(miss: GuardMiss, sizes: Mapping[str, int], dims: Sequence[DimName]) -> Reason:
    """The miss in plain words. `sizes` are the call's by name, as far as they are known; `dims` name the tensors' own."""
    words = " ".join(miss.words.partition("  #")[0].split())
    plain = _plain(_LOCAL.sub(r"\1", words), miss.entry, sizes, dims)
    if plain is not None:
        return Reason(miss.entry, miss.words, plain, True)
    if not words:
        return Reason(miss.entry, miss.words, NO_REASON, False)
    short = words if len(words) <= _SHOWN else f"{words[: _SHOWN - 1]}…"
    return Reason(miss.entry, miss.words, f"{_entry(miss.entry)} did not fit, in Dynamo's words: {short}", False)


def opened_sizes(opened: Sequence[DimName], dims: Sequence[DimName]) -> tuple[str, ...]:
    """The sizes that became dynamic, each once; `dims` name the tensors' own, where `opened` does not."""
    names = (
        one.size or _size_of(one.tensor, one.dim, dims) or f"dimension {one.dim} of {one.tensor}" for one in opened
    )
    return tuple(dict.fromkeys(names))


def _plain(words: str, entry: str | None, sizes: Mapping[str, int], dims: Sequence[DimName]) -> str | None:
    found = _SIZE.match(words)
    if found and found["what"] == "stride":
        return (
            f"{_owner(found['tensor'])} lies otherwise in memory (stride {found['now']} of dimension {found['dim']}), and "
            f"{_entry(entry)} was made for {found['made']}"
        )
    if found:
        return _other_size(found, entry, dims)
    bound = _BOUND.match(words)
    if bound and (bound["low"] or bound["high"]):
        return _out_of_range(bound, entry, sizes, dims)
    equal = _EQUAL.match(words)
    if equal:
        is_now = _is_now(equal, sizes, dims)
        return f"{is_now}, and {_entry(entry)} was made for {equal['made']}" if is_now else None
    return None


def _other_size(found: re.Match[str], entry: str | None, dims: Sequence[DimName]) -> str:
    size = _size_of(found["tensor"], int(found["dim"]), dims)
    tensor, made, now = found["tensor"], found["made"], found["now"]
    parameter = _PARAMETER.search(tensor)
    made, now = f"{int(made):,}", f"{int(now):,}"
    if parameter:
        which = f"{size_name(size)} {now}" if size else f"size {now}"
        what = "weights are" if parameter[1] == "weight" else "parameters are"
        return f"{which} of {_owner(tensor)}, and {_entry(entry)} was made for {made} ({what} never made dynamic)"
    is_now = f"{size_name(size)} {now}" if size else f"dimension {found['dim']} of {tensor} is {now}"
    return f"{is_now}, and {_entry(entry)} was made for {made}"


def _out_of_range(
    found: re.Match[str], entry: str | None, sizes: Mapping[str, int], dims: Sequence[DimName]
) -> str | None:
    low, high = found["low"], found["high"]
    serves = f"{low} to {high}" if low and high else f"{low} and more" if low else f"{high} and less"
    size = _size_of(found["tensor"], int(found["dim"]), dims)
    now = sizes.get(size or "")
    what = size_name(size or "") or f"dimension {found['dim']} of {found['tensor']}"
    by_itself = low == "2" and now in (None, 1)
    shown = now if now is not None else 1 if by_itself and not high else None
    is_now = what if shown is None else f"{what} {shown:,}" if size else f"{what} is {shown:,}"
    because = " (size 1 is always compiled by itself)" if by_itself and not high else ""
    return f"{is_now}: {_entry(entry)} serves {serves}{because}"


def _is_now(found: re.Match[str], sizes: Mapping[str, int], dims: Sequence[DimName]) -> str | None:
    size = _size_of(found["tensor"], int(found["dim"]), dims)
    return f"{size_name(size)} {sizes[size]:,}" if size and size in sizes else None


def _size_of(tensor: str, dim: int, dims: Sequence[DimName]) -> str | None:
    """The layer's size that a dimension holds, None where that is unknown."""
    own = [(_LOCAL.sub(r"\1", one.tensor), one) for one in dims]
    inputs = list(dict.fromkeys(name for name, _ in own if not _PARAMETER.search(name)))
    wrapped = _WRAPPED_INPUT.match(tensor)
    if wrapped and tensor not in inputs:
        at = int(wrapped[1] or 0)
        tensor = inputs[at] if at < len(inputs) else tensor
    tensor = re.sub(r"^fn\b", "self", tensor)
    return next((one.size for name, one in own if (name, one.dim) == (tensor, dim)), None) or None


def _owner(tensor: str) -> str:
    """ "up's weight", "the weight", or the tensor as it is."""
    parameter, modules = _PARAMETER.search(tensor), _MODULE.findall(tensor)
    if parameter is None:
        return tensor
    return f"{modules[-1]}'s {parameter[1]}" if modules else f"the {parameter[1]}"


def _entry(entry: str | None) -> str:
    return f"entry {entry}" if entry else "an older entry"
