"""Queries of a site: whether its profile is right, what a new one holds, whether a job can run."""
