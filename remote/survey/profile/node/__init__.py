"""What one compute node says of itself, and what follows for its site's profile."""
