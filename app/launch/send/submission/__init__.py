"""From a prepared launch to exactly one job: the submission, and what a lost reply left."""
