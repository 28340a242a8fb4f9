"""Following jobs: polls, states, logs, waiting and recovery."""
