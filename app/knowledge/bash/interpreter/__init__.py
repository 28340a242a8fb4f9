"""A script while it is read: the shell, its functions, variables and commands."""
