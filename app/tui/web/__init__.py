"""The TUI in a browser: one process, one core, and one app for each tab."""
