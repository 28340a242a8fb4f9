"""Code on the site: sent once, named by its hash, unpacked for a job and pruned."""
