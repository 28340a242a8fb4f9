"""Checkpoints.

This file must stay: Python prefers any regular package on PYTHONPATH to a folder without one.
"""
