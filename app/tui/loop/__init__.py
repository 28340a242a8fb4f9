"""Changes to Textual's event loop: the order of keys, and faster drawing."""
