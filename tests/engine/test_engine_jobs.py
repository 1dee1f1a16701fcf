"""The book of jobs by itself."""

from core.engine.jobs import KEPT_JOBS, Ending, JobBook, Record
from core.engine.model import KINDS, WorkerKind


def record(key, kind=KINDS[0]):
    return Record(key=key, title=key, kind=kind, target="m:f", payload=b"p", timeout_s=1)


def started(entry):
    return {"event": "started", "job": entry.id, "worker": "tls://w", "pid": 7}


def test_old_ended_jobs_are_dropped_and_live_ones_kept():
    book = JobBook()
    live = record("live")
    book.add(live)
    for i in range(KEPT_JOBS + 20):
        entry = record(str(i))
        book.add(entry)
        book.cancel(entry.id)
    book.add(record("newest"))
    assert [book.snapshots()[0].key, book.snapshots()[-1].key, len(book.snapshots())] == ["live", "newest", KEPT_JOBS]


def test_lanes_take_their_own_kind():
    book, reader = JobBook(), WorkerKind(name="reader", what="the reader")
    gpu_job, reader_job = record("a"), record("b", reader)
    book.add(gpu_job)
    book.add(reader_job)
    assert book.snapshot(reader_job.id).ahead == 0
    assert book.take(reader) is reader_job
    assert book.take(KINDS[0]) is gpu_job


def test_a_second_start_is_noticed():
    book, entry = JobBook(), record("a")
    book.add(entry)
    book.hear(started(entry))
    assert not entry.started_twice
    book.hear(started(entry))
    assert entry.started_twice


def test_messages_about_strangers_are_passed_over():
    book = JobBook()
    book.hear(started(record("of another engine")))
    book.hear({"event": "exit", "worker": "tls://w", "code": 1})
    assert book.snapshots() == ()


def test_an_ending_job_cannot_be_cancelled():
    book, entry = JobBook(), record("a")
    book.add(entry)
    job = book.final(entry, Ending(state="done", result=b"r"))
    assert book.snapshot(entry.id).state == "queued"
    assert not book.cancel(entry.id)
    book.finish(entry, job)
    assert book.snapshot(entry.id) == job
    assert entry.payload == b""


def test_a_job_dropped_while_it_waited_has_no_final():
    book, entry = JobBook(), record("a")
    book.add(entry)
    assert book.cancel(entry.id)
    assert book.final(entry, Ending(state="done")) is None
