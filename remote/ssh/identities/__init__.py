"""The keys and certificates that a login offers."""
