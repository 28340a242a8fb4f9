"""What jobs do: one request a site, states, logs, waiting, recovery."""
