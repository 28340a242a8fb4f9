"""From a job file and a profile to a launch, and what the adviser says about it. Pure."""
