"""Sentences about a part of a run: its chain, its speed, its transfers."""
