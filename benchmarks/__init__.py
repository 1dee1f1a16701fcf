"""What the performance claims rest on: each module prints a table of ratios measured in one run."""
