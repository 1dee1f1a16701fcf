"""Sweeps that somebody edited: refused or named, and nothing that is there is lost or taken for what it is not."""

import dataclasses
import io
import json
import zipfile

import pytest

from core import __main__ as command_line
from core.analysis.spread import Spread
from core.store import runfile, sweepfile
from core.store.runfile import RunFileError
from core.store.store import Store
from core.store.sweeps import Sweeps
from core.sweep import make_sweep, plan
from tests.sweeps import BATCHES, point_file, write
from tests.zips import members_of, zipped

SWEEP = make_sweep(BATCHES)
ARABIC = "".join(map(chr, (0x660,) * 4)) + ".run.zip"


@pytest.fixture
def sweeps(home, tmp_path):
    return Sweeps(home, tmp_path / "recordings")


def written(sweeps):
    """The folder of a whole sweep of one's own."""
    write(sweeps.home / "sweeps", "own", BATCHES)
    return sweeps.home / "sweeps" / "own"


def changed(data, **changes):
    """The run file with another point in it."""
    found = runfile.read_manifest(data)
    return runfile.pack(
        dataclasses.replace(found, point=dataclasses.replace(found.point, **changes)),
        runfile.read_trace_bytes(data),
        runfile.read_code(data),
    )


WRONG = {
    "values of another point": {"values": (16,)},
    "no values": {"values": ()},
    "another index": {"index": 2},
    "another round": {"round": 1},
    "another process": {"process": "eager"},
    "a negative count": {"replayed": -1},
    "an empty spread": {"kernel_time_us": Spread(0, 0.0, 0.0, 0.0, 0.0, 0.0)},
}


@pytest.mark.parametrize("changes", WRONG.values(), ids=WRONG)
def test_an_edited_point_is_refused_named_and_noted(sweeps, tmp_path, capsys, changes):
    folder = written(sweeps)
    good = sweeps.export(sweeps.get("own"))
    point = changed((folder / "0005.run.zip").read_bytes(), **changes)
    bad = zipped({**members_of(good), "0005.run.zip": point})
    with pytest.raises(RunFileError, match=r"0005\.run\.zip.*edited"):
        Sweeps(tmp_path / "elsewhere", tmp_path / "none").upload(bad)
    (folder / "0005.run.zip").write_bytes(point)
    assert 5 not in [one.point.order for one in sweeps.manifests(sweeps.get("own"))]
    assert list(sweeps.problems()) == [folder / "0005.run.zip"]
    path = tmp_path / "bad.sweep.zip"
    path.write_bytes(bad)
    assert command_line.main(["summary", str(path), "--json"]) == 2
    assert "0005.run.zip" in json.loads(capsys.readouterr().out)["error"]
    assert command_line.main(["summary", str(folder), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["done"], len(told["notes"])) == (15, 1) and told["notes"][0].startswith(
        ("0005.run.zip", "The run in 0005")
    )


def test_a_name_in_other_digits_is_no_points(sweeps, tmp_path):
    folder = written(sweeps)
    members = members_of(sweeps.export(sweeps.get("own")))
    members[ARABIC] = members.pop("0000.run.zip")
    with pytest.raises(RunFileError, match="no part of a sweep"):
        Sweeps(tmp_path / "elsewhere", tmp_path / "none").upload(zipped(members))
    (folder / "0000.run.zip").rename(folder / ARABIC)
    assert sweeps.get("own").done == frozenset(range(1, 16))
    path = tmp_path / "x.zip"
    path.write_bytes(zipped(members))
    assert command_line.main(["summary", str(path)]) == 2


def test_an_upload_leaves_what_cannot_be_read_as_it_is(sweeps, tmp_path):
    data = sweeps.export(_other(tmp_path))
    sweeps.upload(data)
    folder = sweeps.home / "sweep-uploads" / "other"
    head = folder / sweepfile.HEAD
    later = head.read_bytes().replace(b'"format":1', b'"format":2')
    head.write_bytes(later)
    with pytest.raises(RunFileError, match="left as it is"):
        sweeps.upload(data)
    assert head.read_bytes() == later and len(list(folder.iterdir())) == 17
    folder.rename(folder.with_name("moved away"))
    assert sweeps.upload(data).complete


def _other(tmp_path):
    write(tmp_path / "far" / "sweeps", "other", BATCHES)
    return Sweeps(tmp_path / "far", tmp_path / "none").get("other")


def test_points_are_held_against_the_head_of_the_moment(sweeps):
    folder = written(sweeps)
    assert len(sweeps.manifests(sweeps.get("own"))) == 16
    good = (folder / sweepfile.HEAD).read_bytes()
    told = json.loads(good)
    told["sweep"]["points"][3] = [64]
    (folder / sweepfile.HEAD).write_bytes(json.dumps(told).encode())
    entry = sweeps.get("own")
    assert len(sweeps.manifests(entry)) == 12 and sweeps.get("own").done == set(range(16)) - {3, 7, 11, 15}
    (folder / sweepfile.HEAD).write_bytes(good)
    assert sweeps.get("own").complete and len(sweeps.manifests(sweeps.get("own"))) == 16


def test_a_sweep_that_was_cut_off_is_damaged_rather_than_a_run(sweeps, tmp_path, capsys):
    write(sweeps.home / "sweeps", "own", BATCHES)
    data = sweeps.export(sweeps.get("own"))
    cut = data[: data.rindex(b"PK\x03\x04", 0, data.index(b"0009.run.zip"))]
    assert zipfile.is_zipfile(io.BytesIO(cut)), "the last whole run file in it is found"
    for upload in (sweeps.upload, Store(tmp_path / "elsewhere").upload):
        with pytest.raises(RunFileError, match="The file is damaged"):
            upload(cut)
    path = tmp_path / "cut.sweep.zip"
    path.write_bytes(cut)
    assert command_line.main(["summary", str(path)]) == 2
    assert "damaged" in capsys.readouterr().err


def test_a_measured_point_with_other_values_is_not_kept(sweeps):
    entry = sweeps.create(SWEEP)
    data = point_file(entry.head.id, SWEEP, plan(SWEEP)[1])
    with pytest.raises(RunFileError):
        sweeps.add(entry.head.id, 1, changed(data, values=(999,)))
