"""Queries of a site: checks of its profile, facts for a new one, and whether a job can run."""
