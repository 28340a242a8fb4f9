"""Requests to a scheduler: submitting once, settling, polling, cancelling."""
