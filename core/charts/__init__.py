"""Charts: plain functions, table in, Plotly figure out. No Streamlit; one look and one palette for every page."""
