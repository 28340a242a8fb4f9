"""Code on the site: sent once, named by its hash, copied for each run, and pruned."""
