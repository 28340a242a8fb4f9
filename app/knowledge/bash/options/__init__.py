"""The options of sbatch, srun and the programs that launch, and how they are read."""
