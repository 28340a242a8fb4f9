"""Code on the site: sent once, named by its hash, fetched, listed and pruned."""
