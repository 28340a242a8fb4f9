"""The job file a person writes, what it may name, and the launch it becomes."""
