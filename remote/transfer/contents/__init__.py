"""Contents sent to a site: each once, named by its hash, put together as read-only trees."""
