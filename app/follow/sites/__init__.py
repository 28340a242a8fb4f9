"""Watched sites: their poll schedule, link states, overviews and staged data."""
