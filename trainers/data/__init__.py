"""The data of a training run, and each rank's share of it.

Keep this file: Python prefers any regular package on PYTHONPATH to a folder without one.
"""
