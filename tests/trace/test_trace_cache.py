"""Tables on disk: what is written comes back, and what is no cache of ours is told apart."""

import pyarrow as pa
import pytest

from core.trace import TablesError, open_tables, read_trace, write_tables
from core.trace import cache as cache_module
from tests.trace.build import op, trace, two_steps


def test_round_trip(tmp_path):
    tables = read_trace(trace(*two_steps(), deviceProperties=[{"id": 0}]))
    write_tables(tables, tmp_path / "new" / "folder")
    again = open_tables(tmp_path / "new" / "folder")
    assert (again.events, again.tracks, again.meta) == (tables.events, tables.tracks, tables.meta)


def test_replaces_what_was_there_and_leaves_nothing_else(tmp_path):
    write_tables(read_trace(trace(op("old", 1, 1))), tmp_path)
    before = open_tables(tmp_path)
    write_tables(read_trace(trace(op("new", 1, 1))), tmp_path)
    assert open_tables(tmp_path).events["name"].to_pylist() == ["new"]
    assert before.events["name"].to_pylist() == ["old"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["tables.arrow", "tables.crc32"]


def test_missing(tmp_path):
    with pytest.raises(TablesError, match="no tables yet"):
        open_tables(tmp_path / "none")


def test_other_format(tmp_path, monkeypatch):
    monkeypatch.setattr(cache_module, "FORMAT", 0)
    write_tables(read_trace(trace(op("a", 1, 1))), tmp_path)
    monkeypatch.undo()
    with pytest.raises(TablesError, match="another version"):
        open_tables(tmp_path)


def test_foreign_arrow_file(tmp_path):
    table = pa.table({"x": [1]})
    with pa.ipc.new_file(str(tmp_path / "tables.arrow"), table.schema) as writer:
        writer.write_table(table)
    with pytest.raises(TablesError, match="foreign"):
        open_tables(tmp_path)


@pytest.mark.parametrize("kept", [0, 1, 7, 100, 0.5, -1, -10])
def test_damaged_file(tmp_path, kept):
    write_tables(read_trace(trace(*two_steps())), tmp_path)
    path = tmp_path / "tables.arrow"
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * kept) if isinstance(kept, float) else kept])
    with pytest.raises(TablesError):
        open_tables(tmp_path)


def test_any_damage_is_noticed(tmp_path):
    write_tables(read_trace(trace(op("one", 1, 1))), tmp_path)
    whole = (tmp_path / "tables.arrow").read_bytes()
    for at in range(0, len(whole), 61):
        hurt = bytearray(whole)
        hurt[at] ^= 0x55
        (tmp_path / "tables.arrow").write_bytes(bytes(hurt))
        with pytest.raises(TablesError):
            open_tables(tmp_path)
