"""The verbs of the command line, grouped by subject."""
