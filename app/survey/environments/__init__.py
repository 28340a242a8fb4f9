"""A site's container images and virtual environments, as a person sees and removes them."""
