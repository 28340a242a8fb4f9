"""Contents sent to a site: stored once under their hashes, combined into read-only trees."""
