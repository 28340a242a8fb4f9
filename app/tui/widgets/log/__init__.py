"""A log's text on the screen."""
