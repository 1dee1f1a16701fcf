"""A visit to the real Doctor page with a real worker, in a process of its own: prints what was seen as JSON.

Its process stands for the web process: what it has imported at the end must not hold torch.
"""

import json
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from streamlit.testing.v1 import AppTest  # noqa: E402

from core.ui import session  # noqa: E402

DEADLINE_S = 120.0


def button(page, key):
    """The button of that key, None where the page has none."""
    return next((one for one in page.button if one.key == key), None)


def texts(page):
    """Every sentence on the page, and its tables as HTML."""
    kinds = ("title", "subheader", "markdown", "caption", "success", "warning", "error", "info", "code")
    said = [element.value for kind in kinds for element in getattr(page, kind)]
    return said + [element.proto.body for element in page.get("html")]


def main():
    page = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60).switch_page("pages/4_Doctor.py").run()
    seen = {"first": texts(page), "exceptions": len(page.exception)}
    button(page, "doctor:closer").click().run()
    end = time.monotonic() + DEADLINE_S
    while not any("by the worker" in text for text in texts(page)) and time.monotonic() < end:
        time.sleep(0.2)
        page.run()
    seen |= {"last": texts(page), "exceptions": seen["exceptions"] + len(page.exception)}
    button(page, "doctor:closer").click().run()
    seen["again"] = texts(page)
    cancel = button(page, "doctor:cancel")
    cancel.click().run()
    while button(page, "doctor:cancel") is not None and time.monotonic() < end:
        time.sleep(0.2)
        page.run()
    seen |= {
        "cancelled": texts(page),
        "exceptions": seen["exceptions"] + len(page.exception),
        "torch": sorted({"torch", "triton", "liger_kernel"} & set(sys.modules)),
    }
    session.engine().close()
    sys.stdout.write(json.dumps(seen) + "\n")


if __name__ == "__main__":
    main()
