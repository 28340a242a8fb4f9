"""The verbs about sites: their profiles, nodes and stored data."""
