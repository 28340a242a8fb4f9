"""The TUI's event loop where it differs from Textual: the order of keys."""
