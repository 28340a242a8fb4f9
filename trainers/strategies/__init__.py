"""How a training is spread over its ranks.

This file must stay: Python prefers any regular package on PYTHONPATH to a folder without one.
"""
