"""Results of a run: metrics, series from its log, files."""
