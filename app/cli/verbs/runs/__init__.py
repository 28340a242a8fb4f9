"""The verbs about runs: what they do, why they failed, what they left."""
