"""What the tables of a trace say: plain functions, table in, table out."""
