"""Describes new clusters in profiles, from Slurm's answers and from a measured node."""
