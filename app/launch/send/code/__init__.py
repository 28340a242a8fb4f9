"""The project's part of a job: its files, its commit, its requirements."""
