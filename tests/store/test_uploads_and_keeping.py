"""What may be uploaded, kept and deleted; and that two servers on one home see each other's changes."""

import gzip
import io
import json
import zipfile

import pytest

from core.store import runfile
from core.store import store as store_module
from core.store.files import write_whole
from core.store.manifest import Failure, Samples
from core.store.runfile import RunFileError, pack
from core.store.store import Store, StoreError
from core.ui import words
from tests.runs import manifest, run_file, trace_bytes
from tests.store.test_store import altered
from tests.zips import zipped


@pytest.fixture
def store(tmp_path):
    (tmp_path / "recordings").mkdir()
    (tmp_path / "recordings" / "shipped.run.zip").write_bytes(run_file("shipped"))
    return Store(tmp_path / "home", tmp_path / "recordings")


def later_format():
    with zipfile.ZipFile(io.BytesIO(run_file())) as archive:
        known = json.loads(archive.read("manifest.json"))
    return zipped({"manifest.json": json.dumps(known | {"format": 99})})


def test_an_upload_is_listed_as_measured_elsewhere(store):
    entry = store.upload(run_file("theirs"))
    assert entry.path.parent == store.home / "uploads"
    found = store.get("theirs")
    assert (found.origin, found.recorded, found.path) == ("uploaded", False, entry.path)
    assert found.manifest == manifest("theirs")
    assert words.place(found.head.device, found.origin) == "Uploaded, measured on NVIDIA H200"
    assert store.tables(found).events.num_rows == 8
    origins = {entry.head.id: entry.origin for entry in store.entries()}
    assert origins == {"theirs": "uploaded", "shipped": "recorded"}
    assert store.add(run_file("mine")).origin == store.get("mine").origin == "live"


@pytest.mark.parametrize("run_id", ["shipped", "mine", "theirs"])
def test_a_run_that_is_there_already_is_returned_and_nothing_is_written(store, run_id):
    store.add(run_file("mine"))
    store.upload(run_file("theirs"))
    known = store.get(run_id)
    before = {path: path.stat().st_mtime_ns for path in store.home.rglob("*.run.zip")}
    assert store.upload(known.path.read_bytes()) == known
    with pytest.raises(RunFileError, match="with other content; it is left as it is"):
        store.upload(run_file(run_id, seconds=99.0))
    assert {path: path.stat().st_mtime_ns for path in store.home.rglob("*.run.zip")} == before


def test_a_failed_run_without_a_trace_may_be_uploaded(store):
    failed = manifest("failed", status="failed", failure=Failure("k", "It failed."))
    assert store.upload(pack(failed, None, {})).head.failure == "It failed."


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "The file is not a run"),
        (b"junk", "The file is not a run"),
        (run_file()[:-30], "The file is not a run"),
        (zipped({"hello.txt": "x"}), "The zip holds no manifest.json"),
        (zipped({"manifest.json": "{}"}), "manifest cannot be read"),
        (zipped({"live/a.run.zip": "x"}), "holds run files rather than a run"),
        (run_file(""), "none that FusionScope gives"),
        (run_file("a,b"), "none that FusionScope gives"),
        (run_file(step_us=Samples("us", "x", (-5.0,))), "holds times that no run can take"),
        (run_file(step_us=Samples("us", "x", (1e308,))), "holds times that no run can take"),
        (run_file(peak_memory_bytes=-5), "peak memory is negative"),
        (run_file(created=""), "status or date"),
        (run_file(status="whatever"), "status or date"),
        (trace_bytes([]), "This is a bare trace"),
        (b' {"traceEvents": []}', "This is a bare trace"),
        (b"[]", "This is a bare trace"),
        (later_format(), "written in format 99"),
        (altered("x", layer="unheard_of"), "does not have what the run is of"),
        (altered("x", backend="tpu"), "does not have what the run is of"),
        (altered("x", sizes=[]), "sizes are not those of its layer"),
        (pack(manifest(), b"not gzip, not json", {}), "The trace inside the run cannot be read"),
        (pack(manifest(), trace_bytes([])[:-9], {}), "The trace inside the run cannot be read"),
        (pack(manifest(), gzip.compress(b"{" + b" " * 31_000_000 + b'"traceEvents": []}'), {}), "larger than"),
        (pack(manifest(), None, {f"{n}.py": " " * 15_000_000 for n in range(7)}), "far larger than any run"),
        (pack(manifest(), None, {f"{n}.py": "" for n in range(2001)}), "far larger than any run"),
    ],
)  # fmt: skip
def test_what_is_no_whole_run_is_refused_in_one_sentence_and_not_kept(store, data, says):
    with pytest.raises(RunFileError) as refused:
        store.upload(data)
    assert says in str(refused.value)
    assert "\n" not in str(refused.value)
    assert not (store.home / "uploads").exists()


def test_an_upload_takes_the_place_of_a_damaged_file_of_its_name(store):
    path = store.upload(run_file("theirs")).path
    write_whole(path, b"junk")
    assert store.get("theirs") is None
    assert store.upload(run_file("theirs")).path == path
    assert store.get("theirs").origin == "uploaded"


def test_own_and_uploaded_runs_are_deleted_with_their_tables(store):
    store.add(run_file("mine"))
    store.add(run_file("mine-too"))
    store.upload(run_file("theirs"))
    for run_id in ("mine", "mine-too", "theirs"):
        store.tables(store.get(run_id))
    done = store.delete(["mine", "theirs", "mine"])
    assert done.deleted == ("mine", "theirs")
    assert done.left == {}
    assert sorted(entry.head.id for entry in store.entries()) == ["mine-too", "shipped"]
    assert [path.name for path in store.home.rglob("*.run.zip")] == ["mine-too.run.zip"]
    assert [path.name.startswith("mine-too-") for path in (store.home / "tables").iterdir()] == [True]


def test_recordings_kept_runs_and_runs_already_gone_are_left_alone_with_a_sentence(store):
    store.add(run_file("mine"))
    store.add(run_file("kept"))
    store.keep("kept", True)
    done = store.delete(["shipped", "mine", "kept", "nowhere", "../../etc/passwd"])
    assert done.deleted == ("mine",)
    assert done.left == {
        "shipped": "Shipped recordings stay.",
        "kept": "Kept runs stay until they are released.",
        "nowhere": "It was gone already.",
        "../../etc/passwd": "It was gone already.",
    }
    assert (store.recordings / "shipped.run.zip").exists()
    assert store.get("kept").kept
    store.keep("kept", False)
    assert store.delete(["kept"]).deleted == ("kept",)


def test_an_own_copy_of_a_recording_goes_and_the_recording_stays(store):
    store.add(run_file("shipped"))
    done = store.delete(["shipped"])
    assert done.left == {"shipped": "Shipped recordings stay."}
    assert [entry.origin for entry in store.entries()] == ["recorded"]


def test_keeping_outlives_the_index_and_the_server(store):
    store.add(run_file("odd/id"))
    store.keep("odd/id", True)
    store.keep("odd/id", True)
    assert store.entries()
    (store.home / "index.json").unlink()
    other = Store(store.home, store.recordings)
    assert other.get("odd/id").kept
    assert not other.get("shipped").kept
    other.keep("odd/id", False)
    assert not store.get("odd/id").kept


def test_of_a_run_that_is_shipped_as_well_the_own_copy_is_kept(store):
    store.add(run_file("shipped"))
    store.keep("shipped", True)
    assert [(entry.origin, entry.kept) for entry in store.entries()] == [("live", True), ("recorded", False)]


@pytest.mark.parametrize(("run_id", "says"), [("shipped", "need no keeping"), ("nowhere", "is not here any more")])
def test_what_cannot_be_kept_is_said(store, run_id, says):
    with pytest.raises(StoreError, match=says):
        store.keep(run_id, True)


def test_a_disk_that_refuses_a_deletion_is_told(store, monkeypatch):
    entry = store.add(run_file("mine"))
    monkeypatch.setattr(store_module.Path, "unlink", lambda *a, **k: (_ for _ in ()).throw(OSError(30, "Read-only")))
    assert store.delete(["mine"]).left == {"mine": "The disk refused: Read-only."}
    assert entry.path.exists()


def test_two_servers_on_one_home_see_each_others_changes(store):
    other = Store(store.home, store.recordings)
    assert len(store.entries()) == len(other.entries()) == 1
    store.add(run_file("mine"))
    assert other.get("mine").origin == "live"
    other.upload(run_file("theirs"))
    assert store.get("theirs").origin == "uploaded"
    other.keep("mine", True)
    assert store.get("mine").kept
    assert store.delete(["mine", "theirs"]).deleted == ("theirs",)
    assert other.get("theirs") is None
    other.keep("mine", False)
    assert store.delete(["mine"]).deleted == ("mine",)
    assert [entry.head.id for entry in other.entries()] == ["shipped"]


def test_a_downloaded_run_can_be_uploaded_elsewhere(store, tmp_path):
    whole = store.add(run_file("mine", code={"a.py": "x = 1"})).path.read_bytes()
    elsewhere = Store(tmp_path / "elsewhere", tmp_path / "nothing")
    assert elsewhere.upload(whole).path.read_bytes() == whole
    assert runfile.read_code(elsewhere.get("mine").path) == {"a.py": "x = 1"}
