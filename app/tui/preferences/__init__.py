"""The user's choices: the theme and the keys."""
