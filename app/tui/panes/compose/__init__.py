"""The views of a job file on the screen New: its form, its text, its script, its node map."""
