"""What a site is asked: does its profile hold, what is a new one like, would this job run."""
