"""Finding runs: by workload first, then by device and age; failed, throttled and unsettled ones never answer."""

import io
import json
import os
import threading
import zipfile

import pytest

from core.store import store as store_module
from core.store.entry import Entry
from core.store.files import write_whole
from core.store.manifest import ClockSample, Failure
from core.store.runfile import RunFileError
from core.store.store import Store, safe_name
from core.workload import make
from tests.runs import CPU, H200, manifest, one_kernel_a_step, run_file

LINEAR = {"layer": "linear"}


@pytest.fixture
def store(tmp_path):
    (tmp_path / "recordings").mkdir()
    return Store(tmp_path / "home", tmp_path / "recordings")


def record(store, run_id, **changes):
    (store.recordings / f"{run_id}.run.zip").write_bytes(run_file(run_id, **changes))


def ids(entries):
    return [entry.manifest.id for entry in entries]


def test_an_empty_store(store):
    assert store.entries() == ()
    assert store.get("x") is None
    assert store.answers(make(LINEAR)) == ()
    assert store.nearest(make(LINEAR)) == ()


def test_this_device_comes_first_then_gpus_then_the_newest(store):
    record(store, "old-h200", created="2026-01-01T00:00:00+00:00")
    record(store, "new-h200", created="2026-02-01T00:00:00+00:00")
    store.add(run_file("mine", device=CPU, created="2026-01-15T00:00:00+00:00"))
    assert ids(store.answers(make(LINEAR), CPU)) == ["mine", "new-h200", "old-h200"]
    assert ids(store.answers(make(LINEAR), H200)) == ["new-h200", "old-h200", "mine"]
    assert ids(store.answers(make(LINEAR))) == ["new-h200", "old-h200", "mine"]
    assert [entry.recorded for entry in store.answers(make(LINEAR), CPU)] == [False, True, True]


def test_a_laptop_on_another_torch_finds_the_recording(store):
    record(store, "h200", versions={"torch": "2.11.0+cu130"})
    assert ids(store.answers(make(LINEAR), CPU)) == ["h200"]


def test_runs_that_answer_nothing_are_kept_and_listed(store):
    held = ClockSample(0.0, 1600, None, None, None, 0x4)
    store.add(run_file("failed", status="failed", failure=Failure("k", "s")))
    store.add(run_file("unsettled", status="unsettled"))
    store.add(run_file("throttled", window_clocks=(held,)))
    store.add(run_file("later-protocol", protocol=manifest().protocol.__class__(steps=20, version=99)))
    assert store.answers(make(LINEAR)) == ()
    assert len(store.entries()) == 4
    assert store.get("failed").manifest.failure.sentence == "s"


def test_another_workload_is_no_answer_but_may_be_near(store):
    store.add(run_file("near", fields={"layer": "linear", "batch": 1000}))
    store.add(run_file("far", fields={"layer": "linear", "batch": 8}))
    store.add(run_file("other", fields={"layer": "geglu_mlp"}))
    assert store.answers(make(LINEAR)) == ()
    assert ids(store.nearest(make(LINEAR))) == ["near", "far", "other"]
    assert ids(store.nearest(make(LINEAR), limit=1)) == ["near"]
    store.add(run_file("near-again", fields={"layer": "linear", "batch": 1000}, created="2026-05-05T00:00:00+00:00"))
    assert ids(store.nearest(make(LINEAR))) == ["near-again", "far", "other"]


def test_all_runs_of_a_workload_failed_ones_too(store):
    store.add(run_file("old", created="2026-01-01T00:00:00+00:00"))
    store.add(run_file("failed", status="failed", created="2026-03-01T00:00:00+00:00"))
    store.add(run_file("another", fields={"layer": "linear", "batch": 8}))
    assert ids(store.of(make(LINEAR))) == ["failed", "old"]
    assert store.of(make({"layer": "geglu_mlp"})) == ()


def test_a_manifest_is_read_when_asked_for_and_not_once_its_file_is_gone(store):
    store.add(run_file("a", seconds=7.0))
    entry = store.get("a")
    assert entry.manifest.seconds == 7.0
    store.add(run_file("b"))
    gone = store.get("b")
    gone.path.unlink()
    with pytest.raises(RunFileError, match="There is no file"):
        gone.manifest  # noqa: B018
    assert entry.manifest is entry.manifest
    another = store.get("a")
    write_whole(another.path, run_file("c"))
    store.get("c").manifest  # noqa: B018
    with pytest.raises(RunFileError, match="now holds another run"):
        Entry(another.path, another.head, "live", "another-stamp").manifest  # noqa: B018


def test_running_twice_keeps_both_and_adding_twice_keeps_one(store):
    first = store.add(run_file("a"))
    store.add(run_file("b"))
    before = first.path.read_bytes()
    store.add(run_file("a", seconds=99.0))
    assert first.path.read_bytes() == before
    assert len(store.entries()) == 2


def test_files_that_are_no_runs_are_passed_over_and_named(store):
    store.add(run_file("good"))
    (store.home / "runs" / "bad.run.zip").write_bytes(b"junk")
    assert ids(store.entries()) == ["good"]
    assert [path.name for path in store.problems()] == ["bad.run.zip"]
    with pytest.raises(RunFileError):
        store.add(b"junk")


def test_a_changed_file_is_read_again_and_a_deleted_one_is_gone(store):
    entry = store.add(run_file("a"))
    assert ids(store.entries()) == ["a"]
    write_whole(entry.path, run_file("renamed", seconds=123456.0))
    assert ids(store.entries()) == ["renamed"]
    entry.path.unlink()
    assert store.entries() == ()


def test_tables_are_made_once_and_opened_again(store):
    entry = store.add(run_file("a"))
    tables = store.tables(entry)
    assert tables.events.num_rows == 8
    made = list((store.home / "tables").rglob("*.arrow"))
    stamp = made[0].stat().st_mtime_ns
    assert store.tables(entry).events.equals(tables.events)
    assert made[0].stat().st_mtime_ns == stamp


def test_a_damaged_table_cache_is_made_anew(store):
    entry = store.add(run_file("a"))
    store.tables(entry)
    next((store.home / "tables").rglob("*.arrow")).write_bytes(b"half a file")
    assert store.tables(entry).events.num_rows == 8


def test_an_id_from_a_stranger_stays_inside_the_store(store):
    entry = store.add(run_file("../../../etc/passwd"))
    assert entry.path.parent == store.home / "runs"
    assert safe_name("linear-eager-8e6f_1") == "linear-eager-8e6f_1"
    assert safe_name("../a b/ü").startswith("___a_b__-")
    assert len({safe_name("x/1"), safe_name("x_1"), safe_name("x-1")}) == 3
    assert len(safe_name("日" * 5000)) < 150


def odd_files(folder):
    """What a folder of runs may hold beside runs, by what it is."""
    os.mkfifo(folder / "pipe.run.zip")
    (folder / "link.run.zip").symlink_to(folder / "nowhere")
    (folder / "folder.run.zip").mkdir()
    (folder / "empty.run.zip").write_bytes(b"")
    for name, text in (
        ("deep", b"[" * 200_000),
        ("long", b" " * 30_000_000),
        ("list", b"[]"),
        ("text", b'"x"'),
        ("nan", b'{"format": NaN}'),
    ):
        with zipfile.ZipFile(folder / f"{name}.run.zip", "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("manifest.json", text)


def test_odd_files_in_the_folder_hurt_nobody(store):
    store.add(run_file("good"))
    odd_files(store.home / "runs")
    assert ids(store.entries()) == ["good"]
    assert ids(store.nearest(make({"layer": "geglu_mlp"}))) == ["good"]


def altered(run_id, **workload):
    """A run file whose workload was changed by hand."""
    data = run_file(run_id)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        known = json.loads(archive.read("manifest.json"))
    known["workload"] |= workload
    changed = io.BytesIO()
    with zipfile.ZipFile(changed, "w") as archive:
        archive.writestr("manifest.json", json.dumps(known))
    return changed.getvalue()


@pytest.mark.parametrize(
    "workload",
    [
        {"layer": "unheard_of"},
        {"backend": "tpu"},
        {"sizes": [["foo", 3]]},
        {"sizes": [["batch", 10**30], ["in_features", 1], ["out_features", 1]]},
        {"sizes": []},
        {"dtype": "fp4"},
    ],
)
def test_a_workload_that_this_version_does_not_have_is_not_served(store, workload):
    store.add(run_file("good"))
    (store.home / "runs" / "odd.run.zip").write_bytes(altered("odd", **workload))
    assert ids(store.entries()) == ["good"]
    assert [path.name for path in store.problems()] == ["odd.run.zip"]


def test_a_full_disk_still_shows_the_recordings(store, monkeypatch):
    record(store, "h200")

    def full(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(store_module, "write_tables", full)
    assert store.tables(store.get("h200")).events.num_rows == 8


def test_a_replaced_file_shows_its_own_events(store):
    entry = store.add(run_file("a"))
    assert store.tables(entry).events.num_rows == 8
    write_whole(entry.path, run_file("a", events=one_kernel_a_step(steps=3)))
    assert store.tables(store.get("a")).events.num_rows == 12


def test_many_threads_may_ask_at_once(store):
    for number in range(20):
        store.add(run_file(f"run-{number}"))
    found, threads = [], [threading.Thread(target=lambda: found.append(len(store.entries()))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [20] * 8
