"""Files of a store: written whole or not at all, named safely, and told apart by a stamp."""

from __future__ import annotations

import hashlib
import os
import stat
import threading
from collections.abc import Iterator
from pathlib import Path


def write_whole(path: Path, data: bytes) -> None:
    """Writes a file so that nobody ever sees half of it."""
    part = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}.part")
    try:
        part.write_bytes(data)
        part.replace(path)
    except OSError:
        part.unlink(missing_ok=True)
        raise


def safe_name(run_id: str) -> str:
    """A run's id as a file name of its own; ids come from manifests, which may be a stranger's."""
    plain = "".join(c if c.isascii() and (c.isalnum() or c in "-_") else "_" for c in run_id)[:100]
    return plain if plain == run_id else f"{plain}-{hashlib.sha256(run_id.encode()).hexdigest()[:12]}"


def stamp_of(path: Path) -> str | None:
    """What changes with the file; None for what is gone or no file at all (a pipe would block whoever opens it)."""
    try:
        return _stamp(path.stat())
    except OSError:
        return None


def files_in(folder: Path) -> Iterator[tuple[str, str]]:
    """Name and stamp of every regular file in a folder, in no order; none where there is no such folder."""
    try:
        with os.scandir(folder) as found:
            items = list(found)
    except OSError:
        return
    for item in items:
        try:
            stamp = _stamp(item.stat())
        except OSError:  # gone since, or a link to nowhere
            continue
        if stamp is not None and _is_text(item.name):
            yield item.name, stamp


def changed_ns(folder: Path) -> int | None:
    """When something was last added to or removed from a folder; None where there is none."""
    try:
        return folder.stat().st_mtime_ns
    except OSError:
        return None


def _stamp(found: os.stat_result) -> str | None:
    return f"{found.st_size}-{found.st_mtime_ns}" if stat.S_ISREG(found.st_mode) else None


def _is_text(name: str) -> bool:
    """Whether a file's name can be shown and stored: Linux takes any bytes."""
    return not any("\ud800" <= c <= "\udfff" for c in name)
