"""The panes of a run's screen."""
