"""The terminal interface. Only here is Textual."""
