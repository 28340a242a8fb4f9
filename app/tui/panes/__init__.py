"""The panes of a run's screen.

They post what they want to the app itself: Textual stops a message that bubbles at its sender,
and the sender is the screen while it opens.
"""
