"""How fast a training is: its operations, what the card could do, and where a step's time goes.

This file must stay: Python prefers any regular package on PYTHONPATH to a folder without one.
"""
