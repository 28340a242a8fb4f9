"""What only the cluster knows of a job: asked in one request, and said as the adviser says it."""
