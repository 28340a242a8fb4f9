"""A run's log, followed and read in pages, and what of it is kept on the laptop."""
