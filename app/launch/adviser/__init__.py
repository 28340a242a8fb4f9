"""The adviser's findings on a launch: the rules of job files, and those of any script. Pure."""
