"""The command line: verbs, prompts and exit codes, without logic."""
