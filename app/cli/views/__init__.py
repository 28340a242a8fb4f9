"""Output of verbs about one run, two runs, and lists."""
