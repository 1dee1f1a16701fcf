"""How far a job of the engine is, as a bar: what every page shows of work that is under way."""

from __future__ import annotations

import time
from typing import Any

import streamlit as st

LIVE_STATES = ("queued", "running")


def bar(job: Any, *, starting: str) -> None:
    """The job's bar. `starting` is what it says before the worker has said anything; one that has ended says how."""
    if job.state == "queued" and job.ahead:
        others = f"{job.ahead} job{'' if job.ahead == 1 else 's'}"
        st.progress(0.0, text=f"{job.title}: waiting, {others} ahead on this device")
    elif job.state in LIVE_STATES:
        share = min(job.done / job.total, 1.0) if job.total else 0.0
        since = f" · {time.time() - job.started_s:.0f} s" if job.started_s else ""
        st.progress(share, text=f"{job.title}: {job.text or starting}{since}")
    else:
        st.progress(1.0, text=f"{job.title}: {job.state}")
