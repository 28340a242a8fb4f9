"""Profiles of clusters that nobody has described: made from what Slurm and a node say."""
