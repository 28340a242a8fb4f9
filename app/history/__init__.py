"""Every run ever made from this laptop, in one SQLite file."""
