"""The tour: the screens on recorded data, with a line that guides the user."""
