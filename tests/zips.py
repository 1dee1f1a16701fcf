"""Zip files in memory, for tests of what comes in and goes out as one."""

import io
import zipfile


def zipped(members):
    """A zip of these members: bytes or text by their names."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return buffer.getvalue()


def members_of(data):
    """The members of a zip by their names."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}
