"""What runs that were given up leave on a site: jobs that start late, and secrets."""
