"""A real engine with a real cluster, shared by a module's tests."""

import pytest
from engine_driver import HERE, Driver

from core.engine import Engine

FOREIGN_LIB = """
class ForeignError(Exception):
    def __init__(self, text):
        super().__init__(text)
class ForeignBaseError(BaseException):
    pass
"""


@pytest.fixture(scope="module")
def worker_path(tmp_path_factory):
    """Folders that only the workers can import from: the targets, and a library this process does not have."""
    library = tmp_path_factory.mktemp("library")
    (library / "foreign_lib.py").write_text(FOREIGN_LIB)
    return (HERE, library)


@pytest.fixture(scope="module")
def log_folder(tmp_path_factory):
    return tmp_path_factory.mktemp("logs")


@pytest.fixture(scope="module")
def driver(worker_path, log_folder):
    engine = Engine(extra_path=worker_path, log_folder=log_folder)
    yield Driver(engine)
    engine.close()
