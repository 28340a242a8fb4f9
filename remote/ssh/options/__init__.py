"""Reads the ssh configuration of a host: each option is honoured, harmless or refused."""
