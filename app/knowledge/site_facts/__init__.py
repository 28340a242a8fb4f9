"""What the words of a job mean at its site, as the rules ask it. Pure."""
