"""What of the project goes with a job: its files, its commit, what it installs and downloads."""
