"""The kinds of values in a job file, each checked when it is read."""
