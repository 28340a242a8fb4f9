"""Queries a site about one job in one request: paths, limits, quotas, budget and start."""
