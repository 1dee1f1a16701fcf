"""The Doctor page: checks at once in the small install, the closer look by a real worker, failures said in sentences."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest
from streamlit.testing.v1 import AppTest

from core import health_checks
from core.health import Check, Examination
from core.ui import doctor, session

ROOT = Path(__file__).resolve().parents[2]
HOSTILE = "![x](http://127.0.0.1:9/x.png) $x^2$ `b` :red[r] <b>h</b><script>x</script>"


@pytest.fixture(autouse=True)
def fresh(home, monkeypatch):
    """A small install that nobody has looked at yet."""
    monkeypatch.setattr(session, "can_run", lambda: False)
    for cache in (session.store, doctor._at_once):
        cache.clear()
    yield
    for cache in (session.store, doctor._at_once):
        cache.clear()


def visit():
    return AppTest.from_file(str(ROOT / "app.py"), default_timeout=60).switch_page("pages/4_Doctor.py").run()


def said(page):
    kinds = ("title", "subheader", "markdown", "caption", "success", "warning", "error", "info")
    texts = [element.value for kind in kinds for element in getattr(page, kind)]
    return [re.sub(r"\\(.)", r"\1", text).replace("\u2060", "") for text in texts]


def table(page):
    """The rows of the table of all checks, each as its cells."""
    (body,) = (element.proto.body for element in page.get("html") if 'class="checks"' in element.proto.body)
    return [re.findall(r"<td[^>]*>(.*?)</td>", row) for row in re.findall(r"<tr>(.*?)</tr>", body)[1:]]


def check(name, state, **fields):
    return Check(**({"name": name, "state": state, "found": "seen", "matters": "It matters."} | fields))


def found_at_once(monkeypatch, *checks):
    found = Examination("a test", "2026-01-02T03:04:05+00:00", checks)
    monkeypatch.setattr(health_checks, "examine", lambda store, where: found)


class Worker:
    """An engine's answers about jobs, by hand: what a page makes of them needs no worker."""

    def __init__(self, *jobs):
        self._jobs = [
            SimpleNamespace(**({"key": session.EXAMINATION, "result": None, "failure": None} | job)) for job in jobs
        ]

    def jobs(self):
        return tuple(self._jobs)


def test_in_the_small_install_the_checks_show_at_once_and_the_closer_look_is_explained():
    page = visit()
    assert not page.exception
    assert any("22 checks by the process of the pages, taken 20" in text for text in said(page))
    assert any("No closer look here. This is the small install" in text for text in said(page))
    assert [button.key for button in page.button] == ["doctor:again"]
    rows = {row[0]: row for row in table(page)}
    assert rows["Python"][1:3] == [
        "ok",
        f"Python {sys.version.split()[0]} (CPython), {os.uname().sysname} {os.uname().machine}",
    ]
    assert all(row[4].endswith((" s", "ms", "µs")) for row in rows.values())
    assert "FusionScope 0." in page.code[-1].value
    assert str(Path.home()) not in page.code[-1].value


def test_every_heading_column_and_state_has_its_sentence_on_hover():
    page = visit()
    assert all(element.help for element in (*page.title, *page.subheader))
    (body,) = (element.proto.body for element in page.get("html") if 'class="checks"' in element.proto.body)
    assert len(re.findall(r'<th title="[^"]+\."', body)) == len(re.findall("<th ", body)) == 5
    assert "A language for GPU kernels in Python" in body


def test_problems_come_first_with_what_to_do(monkeypatch):
    found_at_once(
        monkeypatch,
        check("fine", "ok", seconds=0.25),
        check("odd", "warning", remedy="Mind it."),
        check("bad", "problem", remedy="Mend it.", command="apt-get install it", log="a log"),
    )
    page = visit()
    assert [row[:2] for row in table(page)] == [["bad", "problem"], ["odd", "warning"], ["fine", "ok"]]
    assert [row[4] for row in table(page)] == ["unknown", "unknown", "250.00 ms"]
    told = said(page)
    assert told.index("**bad**") < told.index("**What to do:** Mend it.") < told.index("**odd**")
    assert "**fine**" not in told
    assert [code.value for code in page.code][:2] == ["apt-get install it", "a log"]
    assert any("1 problem" in text for text in told)
    assert not page.success


def test_look_again_carries_the_checks_out_again(monkeypatch):
    found_at_once(monkeypatch, check("bad", "problem"))
    page = visit()
    found_at_once(monkeypatch, check("bad", "ok"))
    assert table(page.run())[0][1] == "problem", "nothing is tried again before somebody asks"
    page.button(key="doctor:again").click().run()
    assert table(page)[0][1] == "ok"
    assert page.success


def test_what_a_machine_says_is_shown_as_it_is(monkeypatch):
    found_at_once(monkeypatch, check(HOSTILE, "problem", found=HOSTILE, matters=HOSTILE, remedy=HOSTILE))
    page = visit()
    assert not page.exception
    for element in (*page.markdown, *page.caption):
        assert not re.search(r"(?<!\\)(?:!\[|\$x|:red\[|<b>)", element.value), element.value
    assert all("<b>" not in cell and "<script>" not in cell for row in table(page) for cell in row)


def test_a_closer_look_that_fails_takes_the_last_one_not_away(monkeypatch):
    found_at_once(monkeypatch, check("quick", "ok"))
    found = Examination("the worker", "2026-01-02T03:04:05+00:00", (check("deep", "ok"),))
    failure = SimpleNamespace(sentence="The worker process died.", log="a segfault")
    jobs = ({"state": "done", "result": msgspec.json.encode(found)}, {"state": "crashed", "failure": failure})
    monkeypatch.setattr(session, "can_run", lambda: True)
    monkeypatch.setattr(session, "engine", lambda: Worker(*jobs))
    page = visit()
    assert not page.exception
    assert "The closer look itself failed. The worker process died." in said(page)
    assert [row[0] for row in table(page)] == ["quick", "deep"]
    assert page.code[0].value == "a segfault"
    assert page.button(key="doctor:closer")


def test_the_closer_look_by_a_real_worker(home):
    pytest.importorskip("torch")
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("doctor_visit.py"))],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=os.environ | {"FUSIONSCOPE_HOME": str(home), "OMP_NUM_THREADS": "1"},
        timeout=250,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    seen = json.loads(done.stdout.splitlines()[-1])
    assert seen["exceptions"] == 0
    assert seen["torch"] == []
    first, last, cancelled = (" ".join(seen[when]) for when in ("first", "last", "cancelled"))
    assert "Package torch" in first
    assert "Profiler" not in first
    assert "came back" in last
    assert "compiled cold in" in last
    assert "by the worker" in " ".join(seen["again"]), "the last result stays while another look is under way"
    assert "The closer look was cancelled" in cancelled
    assert "compiled cold in" in cancelled
