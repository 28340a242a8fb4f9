"""What users see, as hashes: a change of it is seen, and named, before it lands."""
