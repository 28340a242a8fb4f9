"""Messages to every visible screen; a screen's own requests use `asking.ask`."""

from textual.message import Message


class HistoryChanged(Message, bubble=False):
    """Something in history changed: read it again."""
