"""Run files of every format version stay readable. A new format adds a file here; none is ever changed."""

from pathlib import Path

import pytest

from core.store.manifest import FORMAT
from core.store.runfile import read_manifest, read_trace_bytes
from core.store.store import Store
from core.trace import read_trace

GOLDEN = Path(__file__).with_name("golden")


def test_there_is_one_of_every_version():
    assert {path.name for path in GOLDEN.iterdir()} == {f"format_{number}.run.zip" for number in range(1, FORMAT + 1)}


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.run.zip")), ids=lambda path: path.name)
def test_it_is_read_and_found(path, tmp_path):
    manifest = read_manifest(path)
    assert (manifest.workload.layer, manifest.workload.steps, manifest.device.name) == ("linear", 3, "NVIDIA H200")
    assert len(manifest.step_us.values) == 200
    assert read_trace(read_trace_bytes(path)).events.num_rows > 10
    assert Store(tmp_path, recordings=GOLDEN).get(manifest.id).manifest == manifest
