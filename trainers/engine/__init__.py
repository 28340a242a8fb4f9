"""What every training does, whatever it trains and however it is spread over ranks.

This file must stay: Python prefers any regular package on PYTHONPATH to a folder without one.
"""
