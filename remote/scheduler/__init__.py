"""Requests to a scheduler: submit once, settle, poll, cancel."""
