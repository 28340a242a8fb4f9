"""What jobs do: one request per site, states, logs, waiting, recovery."""
