"""The verbs about sites: their profiles, their nodes, and what is kept there."""
