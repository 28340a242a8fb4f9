"""Surveys a site: its images and environments, its profile, and whether a job would run."""
