"""What a run brought: metrics, series of its log, files."""
