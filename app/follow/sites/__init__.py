"""The sites as they are watched: when each is polled, and whether it answers."""
