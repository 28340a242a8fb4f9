"""The job file a person writes, and what it may name."""
