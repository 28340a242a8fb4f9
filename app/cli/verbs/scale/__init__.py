"""The verbs that send a run on other sizes, and compare sizes."""
