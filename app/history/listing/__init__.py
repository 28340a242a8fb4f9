"""Lists of runs: which ones, in which order, and how they are shown page by page."""
