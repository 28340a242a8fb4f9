"""The tour: the screens on a recording, with a line that leads through them."""
