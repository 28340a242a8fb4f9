"""Every run sent from this laptop, in one SQLite file."""
