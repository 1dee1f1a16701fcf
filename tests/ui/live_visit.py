"""A visit to the real page with a real worker, in a process of its own: prints what was seen as JSON.

    python tests/ui/live_visit.py NAME=VALUE ...

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

DEADLINE_S = 75.0


def texts(page):
    """Every sentence on the page."""
    kinds = ("header", "markdown", "caption", "warning", "error", "info")
    return [element.value for kind in kinds for element in getattr(page, kind)]


def until(page, condition):
    """Runs the page until the condition holds; the page's own clock does this in a browser."""
    end = time.monotonic() + DEADLINE_S
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(json.dumps(texts(page))[-3000:])
        time.sleep(0.2)
        page.run()


def button(page, key):
    """The button of that key, None where the page has none."""
    return next((one for one in page.button if one.key == key), None)


def main():
    page = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60).switch_page("pages/1_Explore.py")
    for pair in sys.argv[1:]:
        name, _, value = pair.partition("=")
        page.query_params[name] = value
    page.run()
    until(page, lambda: session.machine() is not None and (button(page, "run:start") or page.caption))
    page.run()
    seen = {"first": texts(page), "exceptions": len(page.exception)}
    start = button(page, "run:start")
    if start is not None:
        start.click().run()
        until(page, lambda: button(page, "run:cancel") is None)
    seen |= {
        "last": texts(page),
        "link": dict(page.query_params),
        "metrics": {metric.label: metric.value for metric in page.metric},
        "charts": [json.loads(chart.proto.spec) for chart in page.get("plotly_chart")],
        "tables": [frame.value.to_dict("list") for frame in page.dataframe],
        "exceptions": seen["exceptions"] + len(page.exception),
        "runs": [entry.path.name for entry in session.store().entries() if not entry.recorded],
        "torch": sorted({"torch", "triton", "liger_kernel"} & set(sys.modules)),
    }
    session.engine().close()
    sys.stdout.write(json.dumps(seen, default=str) + "\n")


if __name__ == "__main__":
    main()
