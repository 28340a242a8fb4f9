"""What a person begins and the app carries through: sends, cancels, the guide, and leaving."""
