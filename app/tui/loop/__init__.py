"""What the event loop of the TUI does otherwise than Textual: the order of keys."""
