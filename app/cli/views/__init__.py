"""What a verb prints of a run, of two, and of lists."""
