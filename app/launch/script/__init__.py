"""The shell words of job.sh: the program's command, staged paths, the environment."""
