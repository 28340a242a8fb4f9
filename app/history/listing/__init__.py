"""Lists of runs: selection, order and pages."""
