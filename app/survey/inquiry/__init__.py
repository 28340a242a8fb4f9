"""Queries the cluster about a job in one request, and returns the adviser's findings."""
