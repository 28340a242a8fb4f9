"""Following jobs: one request per site, states, logs, waiting, recovery."""
