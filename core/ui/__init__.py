"""What pages share: pickers, the run panel, cached look-ups, charts with their bridge. The only core room with Streamlit."""
