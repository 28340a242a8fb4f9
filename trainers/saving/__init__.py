"""Checkpoints.

Keep this file: Python prefers any regular package on PYTHONPATH to a folder without one.
"""
