"""A run's files on their way back: listed, hashed, sent, and put in place."""
