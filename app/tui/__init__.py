"""The terminal interface. Textual is imported only here."""
