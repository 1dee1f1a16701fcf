"""When sweeps were measured: points that had another sweep beside them on the same device are told."""

import dataclasses

import pytest

from core.store import runfile, sweeps
from core.store.manifest import Device
from core.store.sweepfacts import facts
from core.store.sweeps import Sweeps
from core.sweep import make_sweep, plan
from tests.sweeps import BATCHES, point_file

SWEEP = make_sweep({**BATCHES, "backends": "eager,compile"})


@pytest.fixture
def own(home, tmp_path):
    return Sweeps(home, tmp_path / "none")


def measured(own, hour, orders=range(8), device=None):
    """A sweep that was measured from that hour on, a point a minute, each of which took half of it."""
    entry = own.create(SWEEP)
    for order in orders:
        found = runfile.read_manifest(point_file(entry.head.id, SWEEP, plan(SWEEP)[order]))
        created = f"2026-05-01T{hour:02d}:{order + 1:02d}:00+00:00"
        found = dataclasses.replace(found, created=created, seconds=30.0, device=device or found.device)
        own.add(entry.head.id, order, runfile.pack(found, None, {}))
    return own.get(entry.head.id)


def beside(own, entry):
    series = facts(entry, own.manifests(entry), own.spans_beside(entry))
    return [point.beside_others for one in series for point in one.points]


def test_sweeps_that_overlap_in_time_are_told_and_others_not(own):
    first, partly, apart = measured(own, 10), measured(own, 10, range(4, 8)), measured(own, 12)
    assert beside(own, first) == [False] * 4 + [True] * 4
    assert beside(own, partly) == [True] * 4
    assert beside(own, apart) == [False] * 8
    assert own.spans_beside(own.create(SWEEP)) == ()


def test_another_device_or_origin_is_not_beside(own, tmp_path):
    first = measured(own, 10)
    measured(own, 10, device=Device("gpu", "Another GPU"))
    elsewhere = Sweeps(tmp_path / "elsewhere", tmp_path / "none")
    own.upload(elsewhere.export(measured(elsewhere, 10)))
    assert beside(own, first) == [False] * 8


def test_a_point_that_cannot_be_read_or_died_does_not_hide_its_sweep(own):
    first = measured(own, 10)
    other = measured(own, 10, device=None)
    (other.folder / "0000.run.zip").write_bytes(b"junk")
    assert beside(own, first) == [False] + [True] * 7


def test_a_sweep_that_was_left_alone_is_beside_nobody_meanwhile(own):
    resumed = measured(own, 8, range(4))
    for order in range(4, 8):
        found = runfile.read_manifest(point_file(resumed.head.id, SWEEP, plan(SWEEP)[order]))
        found = dataclasses.replace(found, created=f"2026-05-01T20:{order:02d}:00+00:00", seconds=30.0)
        own.add(resumed.head.id, order, runfile.pack(found, None, {}))
    assert beside(own, measured(own, 12)) == [False] * 8
    assert beside(own, measured(own, 20)) == [False] * 3 + [True] * 4 + [False]


def test_uploads_may_be_of_any_machine(own, tmp_path):
    elsewhere = Sweeps(tmp_path / "elsewhere", tmp_path / "none")
    first = own.upload(elsewhere.export(measured(elsewhere, 10)))
    own.upload(elsewhere.export(measured(elsewhere, 10)))
    assert own.spans_beside(first) == ()


def test_two_points_of_a_sweep_at_another_time_are_read_once(own, monkeypatch):
    entry = measured(own, 10)
    measured(own, 15)
    sweeps._measured.cache_clear()
    seen, read = [], runfile.read_manifest
    monkeypatch.setattr(runfile, "read_manifest", lambda source: seen.append(source) or read(source))
    spans = own.spans_beside(entry)
    assert spans == () and len(seen) == 4
    assert own.spans_beside(entry) == spans and len(seen) == 4


def test_the_shipped_sweeps_were_measured_one_after_the_other(home):
    shipped = Sweeps(home)
    entries = [entry for entry in shipped.entries() if entry.recorded]
    assert len(entries) > 10 and not any(any(beside(shipped, entry)) for entry in entries)


def test_a_sweep_begins_when_it_is_made_not_with_its_first_point(own, monkeypatch):
    first = measured(own, 10)
    late = measured(own, 10, range(7, 8))
    assert beside(own, first) == [False] * 7 + [True]
    head = dataclasses.replace(
        late.head, created="2026-05-01T10:04:45+00:00"
    )  # its process was three minutes importing
    monkeypatch.setattr(own, "entries", lambda: (first, dataclasses.replace(late, head=head)))
    assert own.spans_beside(first)[0][0] == sweeps.moment_s(head.created)
    assert beside(own, first) == [False] * 4 + [True] * 4
