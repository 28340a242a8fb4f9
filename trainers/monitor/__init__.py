"""Monitoring a training run: metrics, each rank's heartbeat and watchdog, and the stop request.

To use it, copy this folder beside your own script; it needs only Python 3.10. docs/trainers.md has
an example. Keep this file: Python prefers any regular package on PYTHONPATH to a folder without
one.
"""
