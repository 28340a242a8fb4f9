"""A job file while a user writes it: its form, what is wrong with it, its node map. Pure."""
