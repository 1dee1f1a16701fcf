"""The sweeps of a store: listed, read, exported, uploaded and deleted; their points found as runs, and never as answers."""

import threading

import pytest

from core.store import runfile, sweepfile
from core.store.manifest import ClockSample, NumericError
from core.store.runfile import RunFileError
from core.store.store import Store
from core.store.sweepentry import SweepError, conducting
from core.store.sweepfacts import facts
from core.store.sweeps import Sweeps
from core.sweep import make_sweep, plan, workload_at
from core.sweep_order import point_id
from tests.runs import run_file
from tests.sweeps import BATCHES, MAP, TRAFFIC, point_file, write
from tests.zips import members_of, zipped

SWEEP = make_sweep(BATCHES)
POINTS = len(plan(SWEEP))


@pytest.fixture
def sweeps(home, tmp_path):
    return Sweeps(home, tmp_path / "recordings" / "sweeps")


def filled(sweeps, *orders, fields=None):
    """An own sweep with these points."""
    entry = sweeps.create(make_sweep(fields or BATCHES))
    tasks = plan(entry.head.sweep)
    for order in orders:
        sweeps.add(entry.head.id, order, point_file(entry.head.id, entry.head.sweep, tasks[order]))
    return sweeps.get(entry.head.id)


@pytest.mark.parametrize("fields", [BATCHES, MAP, TRAFFIC])
def test_a_sweep_is_kept_point_by_point(sweeps, fields):
    entry = filled(sweeps, 2, 0, fields=fields)
    assert (entry.done, entry.complete, entry.origin) == ({0, 2}, False, "live")
    assert entry.total == len(plan(make_sweep(fields)))
    assert [one.point.order for one in sweeps.manifests(entry)] == [0, 2]
    assert sweeps.entries() == (entry,) and sweeps.of(make_sweep(fields)) == (entry,)
    assert sorted(path.name for path in entry.folder.iterdir()) == ["0000.run.zip", "0002.run.zip", "sweep.json"]
    again = Sweeps(sweeps.home, sweeps.recordings)
    assert again.entries() == (entry,) and again.manifests(entry) == sweeps.manifests(entry)


def test_every_point_changes_the_stamp(sweeps):
    entry = filled(sweeps)
    stamps = [entry.stamp]
    for task in plan(SWEEP)[:3]:
        sweeps.add(entry.head.id, task.order, point_file(entry.head.id, SWEEP, task))
        stamps.append(sweeps.get(entry.head.id).stamp)
    assert len(set(stamps)) == 4
    assert sweeps.get(entry.head.id).stamp == stamps[-1]


def test_the_best_sweep_of_several_is_whole_then_new(sweeps):
    for sweep_id, leave_out, created in (
        ("half-new", (3,), "2026-03-01T00:00:00+00:00"),
        ("whole-old", (), "2026-01-01T00:00:00+00:00"),
        ("whole-new", (), "2026-02-01T00:00:00+00:00"),
    ):
        write(sweeps.home / "sweeps", sweep_id, BATCHES, leave_out=leave_out, created=created)
    assert [one.head.id for one in sweeps.of(SWEEP)] == ["whole-new", "whole-old", "half-new"]
    assert [one.head.id for one in sweeps.entries()] == ["half-new", "whole-new", "whole-old"]


def test_points_are_runs_by_their_id_and_answer_nothing(home, tmp_path):
    store = Store(home, tmp_path / "recordings")
    sweep_id = write(store.sweeps.recordings, "shipped", BATCHES)
    task = plan(SWEEP)[1]
    entry = store.get(point_id(sweep_id, task.order))
    assert (entry.head.id, entry.origin, entry.head.sweep) == ("shipped-0001", "recorded", "shipped")
    assert entry.manifest.point.index == task.index
    assert store.tables(entry) is not None
    assert [path.name.startswith("shipped-0001-") for path in (home / "tables").iterdir()] == [True]
    workload = workload_at(SWEEP, task.backend, task.index)
    assert (store.entries(), store.of(workload), store.answers(workload), store.nearest(workload)) == ((), (), (), ())
    for strange in ("shipped-0099", "shipped-1", "shipped-00001", "shipped", "-0001", "other-0001", "shipped-٠٠٠١", ""):
        assert store.get(strange) is None, strange


def test_an_uploaded_point_is_listed_and_answers_nothing(home, tmp_path):
    store = Store(home, tmp_path / "recordings")
    store.upload(point_file("elsewhere", SWEEP, plan(SWEEP)[1]))
    workload = workload_at(SWEEP, "eager", 1)
    assert [one.head.id for one in store.entries()] == ["elsewhere-0001"]
    assert (store.of(workload), store.answers(workload), store.nearest(workload)) == ((), (), ())
    assert store.get("elsewhere-0001").head.sweep == "elsewhere"


@pytest.mark.parametrize("damage", [b"", b"junk", None], ids=["empty", "junk", "another point"])
def test_a_damaged_point_is_left_out_named_and_measured_again(sweeps, damage):
    entry = filled(sweeps, 0, 1, 2)
    path = entry.folder / sweepfile.name_of(1)
    path.write_bytes((entry.folder / sweepfile.name_of(2)).read_bytes() if damage is None else damage)
    entry = sweeps.get(entry.head.id)
    assert [one.point.order for one in sweeps.manifests(entry)] == [0, 2]
    assert list(sweeps.problems()) == [path] and sweeps.problems()[path].endswith(".")
    assert sweeps.get(entry.head.id).done == {0, 2}
    assert sweeps.run(point_id(entry.head.id, 1)) is None
    assert set(members_of(sweeps.export(entry))) == {"sweep.json", "0000.run.zip", "0002.run.zip"}
    sweeps.add(entry.head.id, 1, point_file(entry.head.id, SWEEP, plan(SWEEP)[1]))
    assert (len(sweeps.manifests(sweeps.get(entry.head.id))), sweeps.problems()) == (3, {})


@pytest.mark.parametrize("head", [b"", b"{}", b'{"format": 99}', b'{"id": "x", "sweep": 3}', b"[" * 100_000])
def test_a_damaged_head_is_no_sweep_and_named(sweeps, head):
    entry = filled(sweeps, 0)
    (entry.folder / sweepfile.HEAD).write_bytes(head)
    assert (sweeps.entries(), sweeps.get(entry.head.id)) == ((), None)
    assert list(sweeps.problems()) == [entry.folder / sweepfile.HEAD]
    (entry.folder / sweepfile.HEAD).write_bytes(sweepfile.encode(entry.head))
    assert (len(sweeps.entries()), sweeps.problems()) == (1, {})


def test_only_its_own_point_is_taken(sweeps):
    entry = filled(sweeps)
    tasks = plan(SWEEP)
    wrong = (run_file(), point_file("another", SWEEP, tasks[0]), point_file(entry.head.id, SWEEP, tasks[1]))
    for data in wrong:
        with pytest.raises(RunFileError):
            sweeps.add(entry.head.id, 0, data)
    write(sweeps.recordings, "shipped", BATCHES)
    with pytest.raises(SweepError):
        sweeps.add("shipped", 0, point_file("shipped", SWEEP, tasks[0]))
    assert sweeps.get(entry.head.id).done == frozenset()


def test_export_and_upload_are_each_others_inverse(sweeps, tmp_path):
    entry = filled(sweeps, *range(POINTS))
    data = sweeps.export(entry)
    elsewhere = Sweeps(tmp_path / "elsewhere", tmp_path / "none")
    told = []
    found = elsewhere.upload(data, lambda done, total: told.append((done, total)))
    assert (found.origin, found.head, found.done, found.complete) == ("uploaded", entry.head, entry.done, True)
    assert told[0] == (0, POINTS) and len(told) == POINTS
    assert elsewhere.manifests(found) == sweeps.manifests(entry)
    assert elsewhere.export(found) == data
    assert elsewhere.upload(data) == found and sweeps.upload(data).origin == "live"
    elsewhere.delete(found.head.id)
    assert elsewhere.entries() == () and list((tmp_path / "elsewhere" / "sweep-uploads").iterdir()) == []


def test_another_sweep_of_the_same_name_is_not_replaced(sweeps):
    entry = filled(sweeps, 0)
    members = members_of(sweeps.export(entry))
    other = {**members, "0001.run.zip": point_file(entry.head.id, SWEEP, plan(SWEEP)[1])}
    with pytest.raises(RunFileError, match="already here"):
        sweeps.upload(zipped(other))
    assert sweeps.entries() == (entry,)


def test_what_is_no_sweep_is_refused_in_one_sentence(sweeps, tmp_path):
    entry = filled(sweeps, 0, 1)
    good = members_of(sweeps.export(entry))
    head, task = good["sweep.json"], plan(SWEEP)[0]
    sweeps.delete(entry.head.id)
    wrong = {
        "not a sweep": b"junk",
        "single run": run_file(),
        "no sweep.json": zipped({"0000.run.zip": good["0000.run.zip"]}),
        "no part of a sweep": zipped({**good, "../evil.run.zip": b""}),
        "no part": zipped({**good, "0000.run.zip/x": b""}),
        "damaged": zipped({**good, "0001.run.zip": b"junk"}),
        "is not that point": zipped({**good, "0001.run.zip": good["0000.run.zip"]}),
        "holds times that no run can take": zipped({**good, "0000.run.zip": _negative(good["0000.run.zip"])}),
        "is not that point of this": zipped({**good, "0000.run.zip": point_file("another", SWEEP, task)}),
        "and 0016.run.zip is none": zipped({**good, "0016.run.zip": good["0000.run.zip"]}),
        "format 2": zipped({**good, "sweep.json": head.replace(b'"format":1', b'"format":2')}),
        "does not have what the sweep is of": zipped({**good, "sweep.json": head.replace(b"compile_static", b"no_such")}),
        "name or date": zipped({**good, "sweep.json": head.replace(entry.head.id.encode(), b"../" + entry.head.id.encode())}),
        "far larger": zipped({**good, "sweep.json": head + b" " * 2_000_000}),
    }  # fmt: skip
    for sentence, data in wrong.items():
        with pytest.raises(RunFileError) as told:
            sweeps.upload(data)
        assert sentence in str(told.value), str(told.value)
    assert sweeps.entries() == () and not (sweeps.home / "sweep-uploads").exists()


def _negative(data):
    """The run file with a first step of -1 µs."""
    first = f'"values":[{runfile.read_manifest(data).step_us.values[0]}'.encode()
    members = members_of(data)
    assert first in members["manifest.json"]
    return zipped({**members, "manifest.json": members["manifest.json"].replace(first, b'"values":[-1.0')})


def test_a_run_page_sends_a_sweep_to_its_page(home, sweeps):
    with pytest.raises(RunFileError, match="page Shapes"):
        Store(home).upload(sweeps.export(filled(sweeps, 0)))


def test_a_full_disk_leaves_nothing_of_an_upload(sweeps, tmp_path, monkeypatch):
    data = sweeps.export(filled(sweeps, 0, 1))
    elsewhere = Sweeps(tmp_path / "elsewhere", tmp_path / "none")
    write_bytes = type(tmp_path).write_bytes

    def full(path, content):
        if path.name == "0001.run.zip":
            raise OSError(28, "No space left on device")
        return write_bytes(path, content)

    monkeypatch.setattr(type(tmp_path), "write_bytes", full)
    with pytest.raises(OSError, match="No space left"):
        elsewhere.upload(data)
    assert list((tmp_path / "elsewhere" / "sweep-uploads").iterdir()) == []


def test_deleting_takes_the_tables_along_and_spares_what_is_shipped_or_measured(home, tmp_path):
    store = Store(home, tmp_path / "recordings")
    own = filled(store.sweeps, 0)
    store.tables(store.get(point_id(own.head.id, 0)))
    shipped = write(store.sweeps.recordings, "shipped", BATCHES)
    with pytest.raises(SweepError, match="stay"):
        store.sweeps.delete(shipped)
    with pytest.raises(SweepError, match="gone"):
        store.sweeps.delete("nobody")
    with conducting(own), pytest.raises(SweepError, match="being measured"):
        store.sweeps.delete(own.head.id)
    store.sweeps.delete(own.head.id)
    assert [one.head.id for one in store.sweeps.entries()] == ["shipped"]
    assert list((home / "tables").iterdir()) == [] and list((home / "sweeps").iterdir()) == []


def test_reading_while_points_come_sees_whole_points_alone(sweeps):
    entry = filled(sweeps)
    files = [point_file(entry.head.id, SWEEP, task) for task in plan(SWEEP)]
    seen, stop = [], threading.Event()

    def look():
        while not stop.is_set():
            seen.append(len(sweeps.manifests(sweeps.get(entry.head.id))))

    threads = [threading.Thread(target=look) for _ in range(3)]
    for thread in threads:
        thread.start()
    for order, data in enumerate(files):
        sweeps.add(entry.head.id, order, data)
    stop.set()
    for thread in threads:
        thread.join()
    assert sweeps.problems() == {} and max(seen) <= POINTS and sweeps.get(entry.head.id).complete


def test_facts_are_a_series_a_backend(sweeps):
    entry = filled(sweeps, *range(POINTS))
    series = facts(entry, sweeps.manifests(entry))
    assert [(one.name, one.title, one.compiles, one.fuses, one.dynamic) for one in series] == [
        ("eager", "Eager", False, False, None),
        ("compile", "torch.compile", True, True, None),
        ("compile_static", "compile, dynamic=False", True, True, False),
        ("liger", "Liger kernels", False, True, None),
    ]
    compiled = series[1].points
    assert [(one.index, one.order, one.values, one.count) for one in compiled] == [
        (0, 4, (4,), 1), (1, 5, (8,), 1), (2, 6, (16,), 1), (3, 7, (32,), 1),
    ]  # fmt: skip
    one = compiled[1]
    manifest = runfile.read_manifest(entry.folder / sweepfile.name_of(5))
    assert (one.run_id, one.on_gpu, one.device, one.clocks_mhz) == (manifest.id, True, "NVIDIA H200", (1980, 1980))
    assert (one.call, one.kernels, one.dims) == (manifest.point.call, manifest.point.kernels, manifest.point.dims)
    assert (one.step_us.n, one.step_how, one.doubt, one.failure) == (4, "device events", None, None)
    failed = series[0].points[3]
    assert (failed.failure_kind, failed.step_us, failed.call) == ("out of memory", None, None)
    assert failed.failure == "The GPU's memory did not suffice."


def test_facts_of_traffic_and_maps_count_and_go_round(sweeps):
    entry = filled(sweeps, 0, 1, 2, fields=TRAFFIC)
    assert [one.count for one in facts(entry, sweeps.manifests(entry))[0].points] == [120, 60, 4000]
    entry = filled(sweeps, *range(9), fields=MAP)
    eager = facts(entry, sweeps.manifests(entry))[0]
    assert [(one.index, one.round) for one in eager.points] == [(0, 0), (0, 1), (0, 2)]
    assert eager.at(0) == eager.points and eager.at(1) == ()


@pytest.mark.parametrize(
    ("changes", "doubt"),
    [
        ({"status": "unsettled", "settled_why": "never"}, "the profiled steps never held the same kernels"),
        ({"errors": (NumericError("output", 0.5, 0.5),)}, "what was computed is not the layer"),
        (
            {"window_clocks": (ClockSample(0.0, 1980, None, None, None, 0x4),)},
            "the clocks were held down by power cap",
        ),
        (
            {
                "window_clocks": (
                    ClockSample(0.0, 1980, None, None, None, 0),
                    ClockSample(1.0, 1500, None, None, None, 0),
                )
            },
            "the clock went between 1,500 and 1,980 MHz around the profile",
        ),
    ],
)
def test_doubts_are_those_of_a_run_in_a_stack(sweeps, changes, doubt):
    entry = filled(sweeps)
    data = point_file(entry.head.id, SWEEP, plan(SWEEP)[0])
    manifest = runfile.read_manifest(data)
    changed = type(manifest)(**{**{name: getattr(manifest, name) for name in manifest.__dataclass_fields__}, **changes})
    sweeps.add(entry.head.id, 0, runfile.pack(changed, None, {}))
    entry = sweeps.get(entry.head.id)
    assert facts(entry, sweeps.manifests(entry))[0].points[0].doubt == doubt


def test_a_renamed_folder_is_named_rather_than_listed(sweeps):
    entry = filled(sweeps, 0)
    entry.folder.rename(entry.folder.with_name("renamed"))
    assert (sweeps.entries(), sweeps.get("renamed"), sweeps.get(entry.head.id)) == ((), None, None)
    assert list(sweeps.problems().values()) == [
        f"The sweep in this folder is {entry.head.id}; give the folder its name back."
    ]
