"""What a script asks for: its directives, the numbers in them, its ranks, its modules."""
