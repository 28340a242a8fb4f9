"""The common parts of all trainings, whatever the model and the strategy.

Keep this file: Python prefers any regular package on PYTHONPATH to a folder without one.
"""
