"""What job.sh starts and builds, as shell words: the program, staged paths, the environment."""
