"""Targets that the engine's tests have run in a worker: well-behaved ones, and every way to go wrong."""

import ctypes
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path


class ExpectedError(Exception):
    kind = "too_big"
    sentence = "That does not fit."


class UnpicklableError(Exception):
    def __init__(self):
        super().__init__("cannot be pickled")
        self.lock = threading.Lock()

    def __reduce__(self):
        raise TypeError("no pickling")


def echo(payload, report):
    return payload


def where(payload, report):
    return json.dumps({"pid": os.getpid(), "thread": threading.get_ident()}).encode()


def steps(payload, report):
    for i in range(200):
        report(f"step {i}", i, 200)
    report("the last step", 200, 200)
    wait_for_file(payload, report)
    return b"stepped"


def count_run(payload, report):
    """Adds a line to a file, so that a test can count how often it ran."""
    with Path(payload.decode()).open("a") as file:
        file.write("ran\n")
    time.sleep(0.3)
    return b""


def wait_for_file(payload, report):
    while not Path(payload.decode()).exists():
        time.sleep(0.01)
    return b"seen"


def expected(payload, report):
    raise ExpectedError("details for the log")


def unexpected(payload, report):
    raise ValueError("nobody expected this")


def foreign(payload, report):
    """Raises an exception whose class only the worker can import."""
    import foreign_lib

    raise foreign_lib.ForeignError("from afar")


def foreign_base(payload, report):
    import foreign_lib

    raise foreign_lib.ForeignBaseError("from further")


def unpicklable(payload, report):
    raise UnpicklableError


def leave(payload, report):
    sys.exit(3)


def no_bytes(payload, report):
    return {"not": "bytes"}


def kill_self(payload, report):
    os.kill(os.getpid(), signal.SIGKILL)


def segfault(payload, report):
    ctypes.string_at(0)


def exit_hard(payload, report):
    os._exit(7)


def hold_gil(payload, report):
    report("holding", 0, 1)
    time.sleep(0.2)  # lets the message out
    ctypes.PyDLL(None).sleep(120)


def sleep(payload, report):
    report("sleeping", 0, 1)
    time.sleep(float(payload))
    return b"slept"


def with_child(payload, report):
    """Starts a process of its own, says its pid, and never ends."""
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(120)"])
    report(str(child.pid), 0, 1)
    child.wait()
    return b""


def multiprocess(payload, report):
    """Uses multiprocessing, as Inductor's parallel compile does."""
    import multiprocessing

    with multiprocessing.get_context("fork").Pool(1) as pool:
        return str(pool.apply(abs, (-3,))).encode()


def count_and_die(payload, report):
    with Path(payload.decode()).open("a") as file:
        file.write("ran\n")
    time.sleep(0.2)
    os.kill(os.getpid(), signal.SIGKILL)


def last_result(payload, report):
    from core.engine.task import LastResult

    return LastResult(str(os.getpid()).encode())


def has_torch(payload, report):
    return b"yes" if "torch" in sys.modules else b"no"
