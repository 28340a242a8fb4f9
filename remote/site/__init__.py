"""A site as its profile describes it: facts in YAML, checked and typed."""
