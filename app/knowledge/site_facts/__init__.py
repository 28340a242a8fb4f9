"""The meaning of a job's words at its site, for the rules. Pure."""
