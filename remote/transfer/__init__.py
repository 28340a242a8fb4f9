"""Everything stored on a site (code, staged data, environments), and fetching results."""
