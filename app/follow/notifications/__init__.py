"""Events of runs for the user: on the screen, after an absence, and outside the TUI."""
