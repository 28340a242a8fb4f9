"""The adviser's rules, grouped by subject."""
