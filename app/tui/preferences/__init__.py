"""What a person chooses: the theme and the keys."""
