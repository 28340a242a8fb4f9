"""The user's side: CLI, TUI, and the headless core that both call."""
