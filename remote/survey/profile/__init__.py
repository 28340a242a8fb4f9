"""A cluster without a profile: what Slurm and a node say of it, and the profile made of that."""
