"""Code on the site: sent once, named by its hash, copied for a job and pruned."""
