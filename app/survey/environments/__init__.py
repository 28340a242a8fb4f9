"""A site's container images and virtual environments, as a user sees and removes them."""
