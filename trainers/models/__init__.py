"""The networks, and what is counted of them.

This file must stay: Python prefers any regular package on PYTHONPATH to a folder without one.
"""
