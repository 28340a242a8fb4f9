"""Lists of rows: runs, sites, ranks."""
