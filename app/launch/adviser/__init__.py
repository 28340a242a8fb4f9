"""What the adviser says of a launch: the rules of job files, and those of any script. Pure."""
