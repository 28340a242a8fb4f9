"""Proposes a profile for a cluster from the reports of Slurm and of a node."""
