"""What the ssh configuration says of a host: each option is honoured, harmless or refused."""
