"""Data and images that are put on a site before the job that needs them."""
