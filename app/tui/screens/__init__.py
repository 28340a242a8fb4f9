"""One module for each full screen."""
