"""What happened to runs, for the person: on the screen, after an absence, and outside the TUI."""
