"""Watched sites: when each is polled, and whether it answers."""
