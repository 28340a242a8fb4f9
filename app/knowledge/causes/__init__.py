"""What the lines of a log mean: one module a subject, one row a cause."""
