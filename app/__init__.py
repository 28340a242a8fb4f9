"""What a user sees and asks for: CLI, TUI, and the headless core that both call."""
