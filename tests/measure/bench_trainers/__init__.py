"""What the bundled trainers cost on a CPU: `make bench-trainers`."""
