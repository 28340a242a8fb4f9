"""Job files that are being written, and the runs that one of them becomes."""
