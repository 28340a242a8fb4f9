"""The verbs that make job files and send jobs."""
