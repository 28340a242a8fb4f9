"""Whether a host may be trusted: algorithms, known and revoked host keys, the user."""
