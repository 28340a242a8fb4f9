"""Turns a folder of images or texts into the formats that are read fastest.

This file must stay: Python prefers any regular package on PYTHONPATH to a folder without one.
"""
