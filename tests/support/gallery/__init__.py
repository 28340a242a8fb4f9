"""Every screen of the TUI on made-up histories: looked at as pictures, and checked as text."""
