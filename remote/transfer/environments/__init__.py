"""Virtual environments and container images on a site: built, listed, removed."""
