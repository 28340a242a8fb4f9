"""How Slurm writes cores and time limits."""
