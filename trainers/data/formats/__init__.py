"""The formats that data come in: one file each, which knows its own folder or file when it sees it.

This file must stay: Python prefers any regular package on PYTHONPATH to a folder without one.
"""
