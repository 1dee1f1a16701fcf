"""The doctor's checks that need no torch: Python, packages, compilers, headers, disk, store, memory. Each one tries the thing."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import platform
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from core.health import ROOT, Examination, Finding, Probe, State, examined, tried
from core.store.entry import ORIGINS
from core.store.store import Store

REQUIREMENTS = ROOT / "requirements.txt"
DISK_MIN_BYTES = 1_000_000_000
#: A worker with torch and a compile beside it take about this much.
MEMORY_MIN_BYTES = 2_000_000_000
COMPILER_TIMEOUT_S = 60
#: Distribution -> module, where the two differ by more than a hyphen.
_MODULES = {"nvidia-ml-py": "pynvml"}
#: Live runs happen without these, on fewer backends.
_FOR_SOME_BACKENDS = {"triton", "liger-kernel"}
_MATTERS = {
    "torch": "It carries live runs out and profiles them; without it recordings alone are shown.",
    "triton": "torch.compile on a GPU writes its kernels in it, and Liger's kernels are written in it.",
    "liger-kernel": "The backend of hand-written kernels runs what is in it.",
    "distributed": "It carries runs to the worker process and brings their results back.",
    "cryptography": "It makes the certificates with which the pages and the worker know each other.",
    "nvidia-ml-py": "It tells the GPU's clocks: a time without its clock is half a fact.",
    "streamlit": "It draws the pages.",
    "plotly": "It draws the timelines and charts.",
}
_CPP_PROGRAM = '#include <cstdio>\nint main() { std::puts("works"); }\n'
_C_PROGRAM = '#include <stdio.h>\nint main(void) { puts("works"); return 0; }\n'
_HEADER_PROGRAM = "#include <Python.h>\nint main(void) { return 0; }\n"


def examine(store: Store, where: str) -> Examination:
    """All checks that need no torch, on this process's machine; under a second, most of it compiling. `where` names it."""
    return examined(where, (tried(probe) for probe in probes(store)))


def has_torch() -> bool:
    """Whether torch is installed here. Looks without importing it."""
    return importlib.util.find_spec("torch") is not None


def probes(store: Store) -> tuple[Probe, ...]:
    """The checks that need no torch, in the order in which a run meets what they check."""
    live = has_torch()
    return (
        Probe("Python", "The code is written for Python 3.11 and newer.", python_version, "Install Python 3.11 or newer."),
        *packages(REQUIREMENTS, live=live),
        *compilers(live=live),
        Probe("Python headers", "Triton's launchers and Inductor's C++ kernels include Python.h.",
              lambda: headers(live=live), "Install Python's headers."),
        Probe("Disk for runs", "Every run is kept as a file; without room it is refused before it is measured.",
              lambda: disk(store), "Point FUSIONSCOPE_HOME to a folder that can be written."),
        Probe("Store of runs", "Pages show the runs that are in it, yours and the shipped recordings.",
              lambda: kept(store), "Move the files of the folder runs away and look again."),
        Probe("Free memory", "The worker, torch and a compiler need room beside what else runs here.",
              memory, "Close other programs."),
        Probe("Load", "Where other programs keep the processors busy, pages are slow and CPU times are wrong.",
              load, "Look with top at what else runs."),
    )  # fmt: skip


def python_version(wanted: str | None = None) -> Finding:
    """The version of this Python against `wanted`, by default what the project says in pyproject.toml."""
    wanted = wanted or tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"]
    found = f"Python {platform.python_version()} ({platform.python_implementation()}), {platform.system()} {platform.machine()}"
    if not SpecifierSet(wanted).contains(platform.python_version(), prereleases=True):
        remedy = "Install a Python that fits, remove the folder .venv, and set up again naming it."
        return Finding("problem", f"{found}; {wanted} is needed", remedy, "make run PYTHON=python3.12")
    return Finding("ok", found)


def requirements(path: Path) -> tuple[Requirement, ...]:
    """The lines of a requirements file, and of those it names with -r. Raises OSError, InvalidRequirement."""
    found: list[Requirement] = []
    for line in path.read_text().splitlines():
        text = line.split("#")[0].strip()
        if text.startswith("-r "):
            found += requirements(path.parent / text[3:].strip())
        elif text:
            found.append(Requirement(text))
    return tuple(found)


def packages(path: Path, *, live: bool) -> tuple[Probe, ...]:
    """A probe for each package that a requirements file names; `live` says that torch is here, so that runs need them."""
    return tuple(
        Probe(
            f"Package {wanted.name}",
            _MATTERS.get(wanted.name, "It is among the versions that FusionScope is tested with."),
            lambda wanted=wanted: package(wanted, live=live),  # type: ignore[misc]
            "Set everything up again.",
            "make clean setup",
        )
        for wanted in requirements(path)
    )


def package(wanted: Requirement, *, live: bool) -> Finding:
    """Whether a package is installed, its files are there, and its version is the one that is wanted."""
    if wanted.marker is not None and not wanted.marker.evaluate():
        return Finding("not needed", f"It is not used on {platform.system()}.")
    pin = str(wanted.specifier)
    install = f"{_python()} -m pip install '{wanted.name}{pin}'"
    try:
        version = importlib.metadata.version(wanted.name)
    except importlib.metadata.PackageNotFoundError:
        return _missing(wanted, pin, install, live=live)
    module = _MODULES.get(wanted.name, wanted.name.replace("-", "_"))
    if importlib.util.find_spec(module) is None:
        again = f"{_python()} -m pip install --force-reinstall '{wanted.name}{pin}'"
        return Finding(
            "problem", f"{version} is registered, but its module {module} is gone.", "Install it again.", again
        )
    if not wanted.specifier.contains(version, prereleases=True):
        return Finding("warning", f"{version}; {pin} is wanted.", "Install the version that is tested.", install)
    return Finding("ok", f"{version}, as wanted ({pin})")


def _python() -> str:
    """This Python as a command for the folder of the project."""
    found = Path(sys.executable)
    return str(found.relative_to(ROOT)) if found.is_relative_to(ROOT) else found.name


def _missing(wanted: Requirement, pin: str, install: str, *, live: bool) -> Finding:
    for_pages = wanted.name in {one.name for one in requirements(ROOT / "requirements-view.txt")}
    elsewhere = bool(os.environ.get("FUSIONSCOPE_SCHEDULER"))
    if wanted.name == "torch" and not live and not elsewhere:
        found = "Not installed: this is the small install, which shows recordings and runs nothing."
        return Finding("warning", found, "For live runs, set up the whole of it.", "make run")
    if not live and not for_pages and not (elsewhere and wanted.name in ("distributed", "cryptography")):
        where = "runs go to a worker elsewhere" if elsewhere else "only live runs use it"
        return Finding("not needed", f"Not installed; {where}.")
    state: State = "warning" if wanted.name in _FOR_SOME_BACKENDS else "problem"
    return Finding(state, f"Not installed; {pin} is wanted.", "Install it.", install)


def compilers(*, live: bool) -> tuple[Probe, Probe]:
    """Probes for the C++ and the C compiler, each the one that Inductor and Triton would take."""
    has_gpu = Path("/dev/nvidia0").exists()
    cpp = os.environ.get("CXX") or _first("g++", "clang++")
    c = os.environ.get("CC") or _first("gcc", "clang", "cc")
    return (
        Probe("C++ compiler (g++)", "torch.compile on a CPU has its kernels compiled by it.",
              lambda: compiler(cpp, "c++", "g++", needed=live and not has_gpu, live=live),
              "Install g++, or unset CXX.", _INSTALL.format("g++")),
        Probe("C compiler (gcc)", "Triton compiles a launcher for each kernel with it: torch.compile and Liger on a GPU.",
              lambda: compiler(c, "c", "gcc", needed=live and has_gpu, live=live),
              "Install gcc, or unset CC.", _INSTALL.format("gcc")),
    )  # fmt: skip


_INSTALL = "apt-get install {}"


def _first(*names: str) -> str | None:
    return next((name for name in names if shutil.which(name)), None)


def compiler(named: str | None, language: str, usual: str, *, needed: bool, live: bool) -> Finding:
    """Compiles and runs a two-line program. `named` is the compiler (None where there is none), `usual` the one to install."""
    missing: State = "problem" if needed else "warning" if live else "not needed"
    remedy = f"Install {usual} (on Debian and Ubuntu as below)."
    words = shlex.split(named or "")
    if not words or shutil.which(words[0]) is None:
        found = f"{named} is not found." if named else f"No {usual} on PATH."
        told = (None, None) if missing == "not needed" else (remedy, _INSTALL.format(usual))
        return Finding(missing, found, *told)
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        program = str(Path(folder) / "program")
        source = _CPP_PROGRAM if language == "c++" else _C_PROGRAM
        complaint = _compile([*words, "-x", language, "-", "-o", program], source)
        if complaint is not None:
            return Finding(
                missing, f"{named} cannot compile a two-line program: {complaint}", remedy, _INSTALL.format(usual)
            )
        said = subprocess.run([program], capture_output=True, text=True, timeout=COMPILER_TIMEOUT_S, check=True).stdout
    seconds = time.perf_counter() - start
    version = subprocess.run([*words, "--version"], capture_output=True, text=True, timeout=COMPILER_TIMEOUT_S).stdout
    name = (version.splitlines() or words)[0]
    return Finding("ok", f"{name}: a two-line program compiled and {said.strip()} ({seconds:.2f} s, n 1)")


def _compile(command: list[str], source: str) -> str | None:
    """What the compiler complained of, None where it did not. The source goes in by stdin."""
    done = subprocess.run(command, input=source, capture_output=True, text=True, timeout=COMPILER_TIMEOUT_S)
    if done.returncode == 0:
        return None
    return next((line for line in done.stderr.splitlines() if "error" in line.lower()), f"exit code {done.returncode}")[
        :200
    ]


def headers(*, live: bool) -> Finding:
    """Python.h, really included where there is a compiler to include it."""
    folder = Path(sysconfig.get_path("include"))
    missing: State = "problem" if live else "not needed"
    package_name = f"python{sys.version_info.major}.{sys.version_info.minor}-dev"
    remedy = "Install the headers of this very Python (on Debian and Ubuntu as below)."
    told = (None, None) if not live else (remedy, _INSTALL.format(package_name))
    if not (folder / "Python.h").is_file():
        return Finding(missing, "Python.h is not where this Python says that its headers are.", *told)
    named = os.environ.get("CC") or _first("gcc", "clang", "cc", "g++", "clang++")
    if named is None:
        return Finding(
            "unknown", "Python.h is there, but there is no compiler to try it with.", "Install a compiler first."
        )
    complaint = _compile([*shlex.split(named), "-x", "c", "-", "-fsyntax-only", "-I", str(folder)], _HEADER_PROGRAM)
    if complaint is not None:
        return Finding(missing, f"Python.h is there, but {named} cannot include it: {complaint}", *told)
    return Finding("ok", f"Python.h of {platform.python_version()} is there, and {named} includes it")


def disk(store: Store) -> Finding:
    """Free space where runs are kept, and a file of a run's size really written there."""
    try:
        store.check_writable()
    except OSError as error:
        remedy = "Make the folder writable, free some space, or point FUSIONSCOPE_HOME to another folder."
        return Finding("problem", f"A run cannot be written there ({error.strerror}).", remedy)
    free_bytes = shutil.disk_usage(store.home).free
    found = f"{free_bytes / 1e9:.1f} GB free, and a file of a run's size was written"
    if free_bytes < DISK_MIN_BYTES:
        return Finding("warning", found, "Free some space, or point FUSIONSCOPE_HOME to a larger disk.")
    return Finding("ok", found)


def kept(store: Store) -> Finding:
    """How many runs the store holds, and what in it cannot be read."""
    entries, broken = store.entries(), tuple(store.problems())
    live, recorded, uploaded = (sum(entry.origin == origin for entry in entries) for origin in ORIGINS)
    found = (
        f"{live} runs of your own, {recorded} recordings, {uploaded} uploaded, {len(broken)} files that cannot be read"
    )
    if broken:
        names = ", ".join(path.name[:80] for path in broken[:3])
        return Finding(
            "warning",
            f"{found} ({names})",
            "Move these files out of the store; they are damaged or of a newer version.",
        )
    if not recorded:
        return Finding(
            "warning", found, "Get the folder recordings of the repository back.", "git checkout -- recordings"
        )
    return Finding("ok", found)


def memory() -> Finding:
    """Memory that a new process can take, as Linux estimates it."""
    table = Path("/proc/meminfo")
    if not table.exists():
        return Finding("unknown", f"{platform.system()} does not tell it in /proc/meminfo.")
    lines = dict(line.split(":", 1) for line in table.read_text().splitlines())
    free_bytes, all_bytes = (int(lines[name].split()[0]) * 1024 for name in ("MemAvailable", "MemTotal"))
    found = f"{free_bytes / 1e9:.1f} GB of {all_bytes / 1e9:.1f} GB free (MemAvailable)"
    if free_bytes < MEMORY_MIN_BYTES:
        return Finding("warning", found, "Close other programs: a worker with torch and a compiler takes about 2 GB.")
    return Finding("ok", found)


def load() -> Finding:
    """How many processes wanted a processor over the last minute, against how many processors there are."""
    minute, cores = os.getloadavg()[0], os.cpu_count() or 1
    found = f"{minute:.1f} processes on {cores} processors (mean of the last minute)"
    if minute > 2 * cores:
        return Finding("warning", found, "Wait for the other programs to end, or stop them; top shows which they are.")
    return Finding("ok", found)
