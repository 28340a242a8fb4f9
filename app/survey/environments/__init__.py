"""Lists and removes a site's container images and virtual environments."""
