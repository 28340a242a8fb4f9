"""The common parts of all trainings, whatever the model and the strategy.

This file must stay: Python prefers any regular package on PYTHONPATH to a folder without one.
"""
