"""Data, models and images on the site: shipped once, named by their hash, shared between runs."""
