"""The adviser's rules, by what they are about."""
