"""Contents sent to a site: each once, named by its hash, combined into read-only trees."""
