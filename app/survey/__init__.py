"""What a user asks of a site: its images and environments, what it is like, would a job run."""
