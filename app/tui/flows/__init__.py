"""What a user begins and the app carries through: sends, cancels, the guide, and leaving."""
