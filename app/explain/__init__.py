"""What is told of a run: its binding proved, why it failed, what it waits for. Pure."""
