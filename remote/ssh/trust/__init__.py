"""The trust in a host: algorithms, known and revoked host keys, the user's decision."""
