"""Resubmitting a run on another number of nodes: everything that depends on it is recomputed."""
