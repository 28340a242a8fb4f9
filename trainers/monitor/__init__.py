"""How a training goes: metrics, each rank's heartbeat and watchdog, and the request to stop.

Copy this folder beside your own script: it needs Python 3.10 and nothing else. docs/trainers.md has
an example. This file must stay: Python prefers any regular package on PYTHONPATH to a folder
without one.
"""
