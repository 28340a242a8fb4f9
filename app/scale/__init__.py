"""A run again on other nodes, with everything that follows recomputed."""
