"""The command line: verbs, questions, exit codes. No logic."""
