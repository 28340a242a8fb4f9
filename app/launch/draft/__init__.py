"""A job file while a user edits it: its form, its problems, its node map. Pure."""
