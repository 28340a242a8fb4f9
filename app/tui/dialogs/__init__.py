"""One module for each dialog."""
