"""Notifications of runs: on the screen, after an absence, and outside the TUI."""
