"""What a user chooses: the theme and the keys."""
