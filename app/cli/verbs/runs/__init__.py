"""The verbs about runs: their state, failures and results."""
