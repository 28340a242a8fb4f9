"""The job file a user writes, its possible values, and the launch it becomes."""
