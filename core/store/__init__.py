"""Run files on disk: what a run holds, how it is written and found again. No torch, no Streamlit."""
