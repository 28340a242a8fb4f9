"""A run as a row of the history file, and as a record in its folder."""
