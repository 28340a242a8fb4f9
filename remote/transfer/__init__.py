"""What lumitui keeps on a site: code, staged data, environments; and what it fetches from there."""
