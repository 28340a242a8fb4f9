"""Derives a launch from a job file and a profile, and checks it with the adviser's rules. Pure."""
