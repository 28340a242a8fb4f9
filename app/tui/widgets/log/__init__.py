"""The text of a log on the screen."""
