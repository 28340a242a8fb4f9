"""The project's local files: which to send, and their hashes."""
