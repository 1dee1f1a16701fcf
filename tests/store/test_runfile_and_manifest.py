"""A run file gives back what was packed, and what is not one gives one sentence."""

import io
import zipfile

import pytest

from core.store import manifest as manifests
from core.store.manifest import Candidate, ClockSample, Compile, Failure, Load, NumericError, Process, TunedKernel
from core.store.manifest import Spread as ManifestSpread
from core.store.runfile import RunFileError, pack, read_code, read_manifest, read_trace_bytes
from tests.runs import manifest, run_file, trace_bytes

SPREAD = ManifestSpread(3, 2.0, 1.0, 3.0, 1.5, 2.5)


def full():
    """A manifest that uses every field."""
    clock = ClockSample(0.1, 1980, 3201, 139.5, 41, 0)
    kernel = TunedKernel("triton_x", "XBLOCK 1024", (Candidate("XBLOCK 1024", 139.0),), "1,1,1", "128,1,1", SPREAD)
    return manifest(
        load=Load(1.2, SPREAD, (clock,)),
        window_clocks=(clock,),
        compiles=(Compile("fresh", True, 1.0, {"inductor": None}, (kernel,), SPREAD, shown=True, graph_breaks=0),),
        errors=(NumericError("output", 1e-3, 2e-3),),
        other_processes=(Process(12, None),),
        notes=("a note",),
        stages_s={"building": 0.1},
    )


def test_a_manifest_survives_its_json():
    assert manifests.decode(manifests.encode(full())) == full()


def test_a_run_file_gives_back_what_was_packed():
    data = pack(full(), trace_bytes([]), {"b.py": "x = 1\n", "a.py": "y = 2\n"})
    assert read_manifest(data) == full()
    assert read_trace_bytes(data) == trace_bytes([])
    assert read_code(data) == {"b.py": "x = 1\n", "a.py": "y = 2\n"}


def test_a_failed_run_has_no_trace():
    data = pack(manifest(status="failed", failure=Failure("out_of_memory", "No room.")), None, {})
    assert read_trace_bytes(data) is None
    assert read_manifest(data).answers is False


@pytest.mark.parametrize("reasons", [0x4, 0x40, 0x44])
def test_a_run_with_clocks_held_down_answers_nothing(reasons):
    clock = ClockSample(0.0, 1600, None, None, None, reasons)
    assert manifest(window_clocks=(clock,)).throttled
    assert not manifest(window_clocks=(clock,)).answers
    assert manifest(window_clocks=(ClockSample(0.0, 300, None, None, None, 0x1),)).answers, "idle is not throttled"
    assert manifest(window_clocks=(ClockSample(0.0, None, None, None, None, None),)).answers


def test_a_later_format_says_so():
    later = manifests.encode(manifest()).replace(b'"format":1', b'"format":99')
    with pytest.raises(manifests.ManifestError, match="written in format 99"):
        manifests.decode(later)


@pytest.mark.parametrize("data", [b"", b"not a zip", b"PK\x03\x04", run_file()[:400], run_file()[:-30]])
def test_what_is_not_a_run_gives_one_sentence(data):
    with pytest.raises(RunFileError) as caught:
        read_manifest(data)
    assert "\n" not in str(caught.value)


def test_a_foreign_zip_and_a_damaged_manifest(tmp_path):
    other = io.BytesIO()
    with zipfile.ZipFile(other, "w") as archive:
        archive.writestr("readme.txt", "hello")
    with pytest.raises(RunFileError, match="holds no manifest"):
        read_manifest(other.getvalue())
    broken = io.BytesIO()
    with zipfile.ZipFile(broken, "w") as archive:
        archive.writestr("manifest.json", '{"format": 1, "id": 5}')
    with pytest.raises(RunFileError, match="damaged or not a run"):
        read_manifest(broken.getvalue())
    with pytest.raises(RunFileError, match="There is no file"):
        read_manifest(tmp_path / "absent.run.zip")


def test_every_single_byte_of_damage_is_told_or_harmless():
    whole = run_file(code={"a.py": "x = 1"})
    for at in range(0, len(whole), 3):
        hurt = bytearray(whole)
        hurt[at] ^= 0xFF
        try:
            read_manifest(bytes(hurt))
            read_trace_bytes(bytes(hurt))
            read_code(bytes(hurt))
        except RunFileError:
            pass
