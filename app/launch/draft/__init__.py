"""A job file while a person writes it: its form, what is wrong with it, its node map. Pure."""
