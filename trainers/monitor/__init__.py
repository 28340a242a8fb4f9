"""What tells how a training goes: its metrics, each rank's heartbeat; and the wish to stop.

This file must stay: Python prefers any regular package on PYTHONPATH to a folder without one.
"""
