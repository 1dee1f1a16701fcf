"""Numbers as people read them: always a unit, and with the spread and n they stand on. Unknown is said, never 0."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from core.analysis.spread import Spread, spread
from core.glossary import explain
from core.store.entry import Entry
from core.store.manifest import ClockSample, Device, Manifest, Samples, throttle_words
from core.workload import PASSES, Workload, backend_of, flag_words, layer_of

UNKNOWN = "unknown"
_LIVE = re.compile(r"\\:(?=//|material|mailto)|www(?=\\\.)|\\@", re.IGNORECASE)
_MARKDOWN = re.compile(r"([\\`*_{}\[\]()<>#+\-!|~$:&.@])")
_ORIGIN_WORDS = {"live": "Live", "recorded": "Recorded", "uploaded": "Uploaded, measured"}
WIDE = (
    "The middle half of the unprofiled steps differs by more than half: something else was at work on this machine. "
    "Run it again on a quiet one before you believe its step time."
)


def plain(text: object) -> str:
    """Any text as Markdown that shows it as it is: names and sentences may be a stranger's, and links may carry them."""
    escaped = _MARKDOWN.sub(r"\\\1", _on_one_line(text))
    # Addresses become links, and :material/...: an icon, after the escapes are gone: a word joiner keeps them apart.
    return _LIVE.sub("\\g<0>\u2060", escaped)


def _on_one_line(text: object) -> str:
    """Any kind of line break would end a code span, and start a heading."""
    return " ".join(str(text).splitlines())


def badge(text: str) -> str:
    """Any text for a badge, which is itself written in brackets."""
    return plain(text.replace("[", "(").replace("]", ")"))


def code(text: object) -> str:
    """Any text as a code span, backticks in it included."""
    shown = _on_one_line(text)
    fence = "`" * (max((len(run) for run in re.findall("`+", shown)), default=0) + 1)
    space = " " if "`" in shown else ""
    return f"{fence}{space}{shown}{space}{fence}"


def cell(value: object) -> object:
    """A value for a CSV: a text that a spreadsheet would take for a formula is quoted, for names may be a stranger's."""
    return f"'{value}" if isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t", "\r")) else value


def time(us: float | None) -> str:
    """A time given in µs, in the unit that reads best."""
    if us is None or us != us:
        return UNKNOWN
    if us < 1_000:
        return f"{us:.2f} µs" if us < 100 else f"{us:.1f} µs"
    return f"{us / 1e3:.2f} ms" if us < 1e6 else f"{us / 1e6:.2f} s"


def range_and_n(found: Spread | None) -> str:
    """ "237.7–286.2 µs, n 200"."""
    if found is None:
        return UNKNOWN
    if found.n == 1:
        return "n 1"
    low, high = time(found.min), time(found.max)
    if low.split()[-1] == high.split()[-1]:
        low = low.split()[0]
    return f"{low}–{high}, n {found.n:,}"


def spread_of(samples: Samples | None) -> Spread | None:
    """The spread of what was measured, None where nothing was."""
    return spread(samples.values) if samples is not None else None


def distinct(titles: Mapping[str, str]) -> dict[str, str]:
    """The titles by their ids, none of them twice: a picker knows its options by their titles, and would take one for another
    of the same words. Those that are alike are told apart by the ends of their ids."""
    same = Counter(titles.values())
    found = {key: title if same[title] == 1 else f"{title} · {key[-6:]}" for key, title in titles.items()}
    return (
        found if len(set(found.values())) == len(found) else {key: f"{title} · {key}" for key, title in titles.items()}
    )


def memory(count: int | None) -> str:
    """Bytes in decimal units."""
    if count is None:
        return UNKNOWN
    if count < 1e6:
        return f"{count / 1e3:.1f} kB"
    if count >= 1e12:
        return f"{count / 1e12:.1f} TB"
    return f"{count / 1e9:.2f} GB" if count >= 1e9 else f"{count / 1e6:.1f} MB"


def duration(seconds: float) -> str:
    """How long something takes, for a person who waits."""
    if seconds < 1:
        return "under 1 s"
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def predicted_duration(seconds: float) -> str:
    """A predicted duration: "about 5 s", "under 1 s"."""
    return duration(seconds) if seconds < 1 else f"about {duration(seconds)}"


def percent(share: float | None) -> str:
    """A share as a percentage."""
    return UNKNOWN if share is None or share != share else f"{share:.0%}" if share >= 0.095 else f"{share:.1%}"


def device(found: Device) -> str:
    """A device's name as people say it."""
    return found.name if found.kind == "gpu" else f"CPU ({found.name})"


def place(found: Device, origin: str) -> str:
    """ "Recorded on NVIDIA H200" or "Live on CPU (...)"; an uploaded run was measured on the machine it names, which need not
    be this one."""
    return f"{_ORIGIN_WORDS[origin]} on {device(found)}"


def origin(manifest: Manifest) -> str:
    """Driver, versions and date of a run in one line."""
    versions = manifest.versions
    parts = [
        f"driver {manifest.device.driver}" if manifest.device.driver else None,
        *(
            f"{name.replace('_', '-')} {versions[name]}"
            for name in ("torch", "triton", "liger_kernel")
            if versions.get(name)
        ),
        f"Python {versions['python']}" if versions.get("python") else None,
        manifest.created[:16].replace("T", " ") + " UTC",
    ]
    return " · ".join(part for part in parts if part)


def versions(manifest: Manifest) -> str:
    """Driver, torch and the kernels' libraries: the software that two runs must share to be compared."""
    parts = [f"driver {manifest.device.driver}"] if manifest.device.driver else []
    parts += [
        f"{name.replace('_', '-')} {manifest.versions[name] or 'not installed'}"
        for name in ("torch", "triton", "liger_kernel")
        if name in manifest.versions
    ]
    return ", ".join(parts)


def clock_range(samples: Sequence[ClockSample]) -> str:
    """The SM clock from its lowest to its highest reading."""
    known = [sample.sm_mhz for sample in samples if sample.sm_mhz is not None]
    if not known:
        return UNKNOWN
    low, high = min(known), max(known)
    return f"{low:,} MHz" if low == high else f"{low:,}–{high:,} MHz"


def peak_power(samples: Sequence[ClockSample]) -> str:
    """The highest power and temperature of the readings."""
    watts = [sample.power_w for sample in samples if sample.power_w is not None]
    degrees = [sample.temperature_c for sample in samples if sample.temperature_c is not None]
    power = f"up to {max(watts):.0f} W" if watts else "power unknown"
    return power + (f" and {max(degrees)} °C" if degrees else "")


def throttle(samples: Sequence[ClockSample]) -> str:
    """What held the clocks down at any of the readings, in words."""
    if not samples:
        return "throttling unknown"
    reasons = 0
    for sample in samples:
        if sample.throttle_reasons is None:
            return "throttling unknown"
        reasons |= sample.throttle_reasons
    words = throttle_words(reasons)
    return "held down by " + ", ".join(words) if words else "not held down"


def origin_help(origin: str) -> str:
    """What a run's origin means: "live", "recorded" or "uploaded"."""
    return {"live": explain("live"), "recorded": explain("recorded"), "uploaded": explain("uploaded")}[origin]


def layer(workload: Workload) -> str:
    """The layer's title."""
    return layer_of(workload).title


def backend(workload: Workload) -> str:
    """The backend's title."""
    return backend_of(workload).title


def title(workload: Workload) -> str:
    """ "Gated MLP (GEGLU), Eager, 64 × 128 × 768 × 3,072, bf16, forward"."""
    return f"{layer(workload)}, {backend(workload)}, {picked(workload)}"


def sizes_and_flags(workload: Workload) -> str:
    """ "1,024 × 32 × 64, with bias"."""
    return ", ".join((sizes(workload), *flag_words(workload)))


def picked(workload: Workload) -> str:
    """Sizes, flags, number format and passes in short: what the runs of a stack share."""
    return ", ".join((sizes_and_flags(workload), workload.dtype, PASSES[workload.passes].lower()))


def fields(workload: Workload) -> str:
    """Sizes, flags, number format and passes of a workload, the sizes by their titles."""
    titles = {size.name: size.title.lower() for size in layer_of(workload).sizes}
    parts = [f"{titles[name]} **{value:,}**" for name, value in workload.sizes]
    parts += flag_words(workload)
    parts += [workload.dtype, PASSES[workload.passes].lower(), f"{workload.steps} profiled steps"]
    return " · ".join(parts)


def sizes(workload: Workload) -> str:
    """ "64 × 128 × 768 × 3,072"."""
    return " × ".join(f"{size:,}" for _, size in workload.sizes)


def passes(workload: Workload) -> str:
    """ "Forward", or "Forward + backward"."""
    return PASSES[workload.passes]


def nearest(entry: Entry) -> str:
    """A run as a way out from sizes nobody ran."""
    run = entry.head.workload
    told = f"{layer(run)} {sizes(run)}, {run.dtype}, {PASSES[run.passes].lower()}, {backend(run)}, {run.steps} steps"
    return f"{place(entry.head.device, entry.origin)}: {told}"


def one_line(entry: Entry) -> str:
    """A run among others of the same workload: where, when, on which torch."""
    head = entry.head
    state = "" if head.answers else f", {head.state}"
    version = head.versions.get("torch") or UNKNOWN
    return f"{place(head.device, entry.origin)}, {head.created[:16].replace('T', ' ')} UTC, torch {version}{state}"


def source_lines(manifests: Sequence[Manifest], what: str) -> tuple[str, str]:
    """Where a chart's numbers come from, for two lines in the picture itself: what is drawn and when it was taken; device
    and versions."""
    days = sorted({one.created[:10] for one in manifests})
    taken = days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"
    devices = dict.fromkeys(device(one.device) for one in manifests)
    software = dict.fromkeys(versions(one) for one in manifests)
    return " · ".join((what, taken, "FusionScope")), " · ".join((*devices, *software))
