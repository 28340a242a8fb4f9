"""What a run's log says: errors, folded repeats, lines of ranks, tracebacks."""
