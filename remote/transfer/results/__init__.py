"""Fetching a run's files: listed, hashed, sent, and put in place."""
