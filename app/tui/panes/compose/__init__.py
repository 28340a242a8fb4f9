"""The views of a job file on the New screen: its form, its text, its script, its node map."""
