"""Everything stored on a site: code, staged data, environments; and fetches from there."""
