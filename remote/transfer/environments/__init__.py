"""Virtual environments and container images on a site: building, listing, removing."""
