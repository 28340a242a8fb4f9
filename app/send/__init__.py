"""From a launch to a job, exactly once."""
