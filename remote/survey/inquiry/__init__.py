"""One request that asks a site about one job: its paths, limits, quotas, budget and start."""
