"""A run again on other nodes: everything that depends on their number is recomputed."""
