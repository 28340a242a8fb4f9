"""The job file a user writes, what it may name, and the launch it becomes."""
