"""The panes of a run's screen.

They post messages to the app itself: Textual stops a bubbling message at its sender, which is the
screen while it opens.
"""
