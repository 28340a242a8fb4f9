"""A site's profile checked against the live cluster: `lumitui site check`."""
