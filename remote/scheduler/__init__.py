"""What is asked of a scheduler: submit once, settle, poll, cancel."""
