"""The index: a warm one opens no run file, a damaged or foreign one is made anew, and nothing it says outlives a file."""

import os
import shutil

import msgspec
import pytest

from core.store import index as index_module
from core.store import runfile
from core.store.files import write_whole
from core.store.head import Head, head_of
from core.store.manifest import ClockSample, Failure, NumericError, Samples
from core.store.store import Store
from core.workload import make
from tests.runs import H200, manifest, run_file


@pytest.fixture
def store(tmp_path):
    (tmp_path / "recordings").mkdir()
    return Store(tmp_path / "home", tmp_path / "recordings")


@pytest.fixture
def opened(monkeypatch):
    """The run files that were opened, in order."""
    seen, really = [], runfile.opened
    monkeypatch.setattr(runfile, "opened", lambda source: (seen.append(source), really(source))[1])
    return seen


def again(store):
    """Another server on the same home."""
    return Store(store.home, store.recordings)


def ids(store):
    return [entry.head.id for entry in store.entries()]


def fill(store, count=5):
    for number in range(count):
        store.add(run_file(f"run-{number}", created=f"2026-01-0{number + 1}T00:00:00+00:00"))
    assert len(store.entries()) == count


def test_a_head_holds_what_a_list_shows():
    held = ClockSample(0.0, 1600, None, None, None, 0x4)
    full = manifest(
        window_clocks=(held,),
        graph_replay_us=Samples("us", "events", (2.0,)),
        peak_memory_bytes=7,
        errors=(NumericError("output", 0.5, 1.0), NumericError("gradient", None, None, finite=False)),
        failure=Failure("kind", "A sentence.", "a log"),
    )
    head = head_of(full)
    assert (head.id, head.workload, head.created, head.device) == (
        "run-1",
        make({"layer": "linear"}),
        full.created,
        H200,
    )
    assert (head.step_us.median, head.step_us.n, head.step_how) == (11.0, 3, "device events")
    assert (head.graph_replay_us.median, head.peak_memory_bytes, head.n_compiles) == (2.0, 7, 0)
    assert (head.worst_error, head.finite, head.failure) == (0.5, False, "A sentence.")
    assert (head.status, head.state, head.throttled, head.answers) == ("ok", "throttled", True, False)


def test_what_is_unknown_stays_unknown():
    head = head_of(manifest(step_us=None, status="failed"))
    unknown = (head.step_us, head.step_how, head.graph_replay_us, head.peak_memory_bytes, head.worst_error, head.finite)
    assert unknown == (None,) * 6
    assert head.state == "failed"


@pytest.mark.filterwarnings("ignore:overflow")
def test_values_that_overflow_do_not_spoil_the_index():
    head = head_of(manifest(step_us=Samples("us", "events", (-1.7e308, 1.7e308, 1.7e308, -1.7e308))))
    assert msgspec.json.decode(msgspec.json.encode(head), type=Head) == head


def test_listing_with_a_warm_index_opens_no_run_file(store, opened):
    fill(store)
    opened.clear()
    other = again(store)
    assert ids(other) == [f"run-{number}" for number in (4, 3, 2, 1, 0)]
    assert [entry.head.id for entry in other.answers(make({"layer": "linear"}))] == ids(other)
    assert other.nearest(make({"layer": "linear", "batch": 3}))[0].head.id == "run-4"
    assert other.get("run-2").head.step_us.median == 11.0
    assert opened == []
    assert other.get("run-2").manifest.seconds == 1.5
    assert len(opened) == 1


def test_heads_are_the_same_from_the_index_as_from_the_files(store):
    fill(store)
    shutil.copy(next(Store(store.home).recordings.glob("*compile*.run.zip")), store.recordings)
    fresh = {entry.head.id: entry.head for entry in store.entries()}
    assert len(fresh) == 6
    assert {entry.head.id: entry.head for entry in again(store).entries()} == fresh


def test_nothing_is_written_while_nothing_changes(store):
    fill(store)
    before = (store.home / "index.json").stat().st_mtime_ns
    assert len(again(store).entries()) == len(store.entries()) == 5
    assert (store.home / "index.json").stat().st_mtime_ns == before


@pytest.mark.parametrize(
    "damage",
    [b"", b"half of an ind", b"[]", b'{"readers": "x", "known": {}}', b"\xff" * 100, b"[" * 100_000,
     b'{"readers": 1, "known": {"a": {"stamp": "1-2", "head": {}}}}'],
)  # fmt: skip
def test_a_damaged_or_foreign_index_is_made_anew(store, opened, damage):
    fill(store)
    (store.home / "index.json").write_bytes(damage)
    opened.clear()
    assert len(again(store).entries()) == 5
    assert len(opened) == 5
    opened.clear()
    assert len(again(store).entries()) == 5
    assert opened == []


def test_an_index_of_other_code_is_made_anew(store, opened, monkeypatch):
    fill(store)
    opened.clear()
    monkeypatch.setattr(index_module, "_readers", lambda: "other code")
    assert len(again(store).entries()) == 5
    assert len(opened) == 5


def test_a_stale_stamp_is_read_again_and_a_gone_file_is_forgotten(store, opened):
    fill(store)
    paths = {entry.head.id: entry.path for entry in store.entries()}
    write_whole(paths["run-3"], run_file("renamed", seconds=12345.0))
    paths["run-1"].unlink()
    opened.clear()
    other = again(store)
    assert sorted(ids(other)) == ["renamed", "run-0", "run-2", "run-4"]
    assert opened == [paths["run-3"]]
    assert sorted(ids(store)) == sorted(ids(other))
    assert b"run-1" not in (store.home / "index.json").read_bytes()


def test_a_file_rewritten_in_place_is_seen_once_the_folder_is_looked_through_again(store, monkeypatch):
    monkeypatch.setattr(index_module, "TRUSTED_NS", 0)
    fill(store)
    store.get("run-0").path.write_bytes(run_file("in-place", seconds=12345.0))
    assert "in-place" in ids(store)


def test_an_unchanged_folder_is_not_looked_through_again(store, monkeypatch):
    fill(store)
    for folder in (store.home / "runs", store.recordings):
        os.utime(folder, ns=(10**18, 10**18))
    first = store.snapshot()
    looked = []
    monkeypatch.setattr(index_module, "files_in", lambda folder: looked.append(folder) or ())
    assert store.snapshot() is first
    assert looked == []
    (store.home / "runs" / "new.txt").touch()
    assert store.snapshot() is not first
    assert looked


def test_a_change_within_a_tick_of_the_disks_clock_is_seen(store, monkeypatch):
    monkeypatch.setattr(index_module, "TICK_NS", 10**15)  # a slow machine takes longer than a tick for this test
    fill(store)
    folder = store.home / "runs"
    now = folder.stat().st_mtime_ns
    assert len(store.entries()) == 5
    write_whole(folder / "quick.run.zip", run_file("quick"))
    os.utime(folder, ns=(now, now))
    assert "quick" in ids(store)


def test_unreadable_files_are_remembered_with_the_reason(store, opened):
    fill(store, 1)
    write_whole(store.home / "runs" / "bad.run.zip", b"junk")
    assert len(store.problems()) == 1
    opened.clear()
    other = again(store)
    (why,) = other.problems().values()
    assert why.startswith("The file is not a run")
    assert [path.name for path in other.problems()] == ["bad.run.zip"]
    assert opened == []


def test_a_disk_that_refuses_the_index_costs_only_time(store, monkeypatch, caplog):
    def refuse(path, data):
        raise OSError(30, "Read-only file system")

    fill(store)
    (store.home / "index.json").unlink()
    monkeypatch.setattr(index_module, "write_whole", refuse)
    assert len(again(store).entries()) == 5
    assert "cannot be kept" in caplog.text


def test_a_home_without_runs_gets_no_index(tmp_path):
    (tmp_path / "recordings").mkdir()
    (tmp_path / "recordings" / "a.run.zip").write_bytes(run_file("a"))
    assert len(Store(tmp_path / "home", tmp_path / "recordings").entries()) == 1
    assert not (tmp_path / "home").exists()
    assert len(Store(tmp_path / "recordings", tmp_path / "recordings").entries()) == 1
    assert [path.name for path in (tmp_path / "recordings").iterdir()] == ["a.run.zip"]


def test_a_file_whose_name_is_no_text_is_passed_over(store):
    fill(store, 1)
    (store.home / "runs" / os.fsdecode(b"\xff\xfe.run.zip")).write_bytes(run_file("odd-name"))
    assert ids(store) == ["run-0"]
    assert (store.home / "index.json").exists()
