"""What happened to runs, for the user: on the screen, after an absence, and outside the TUI."""
