"""One module for each screen or dialog."""
