"""What is shown of a run: its facts, its proof, why it failed, what it waits for. Pure."""
