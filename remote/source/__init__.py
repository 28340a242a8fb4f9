"""The project's files on the laptop: which of them are sent, and their hashes."""
