"""Meanings of log lines: one module per subject, one row per cause."""
