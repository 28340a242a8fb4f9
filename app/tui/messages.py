"""Messages to every visible screen; a screen's own requests use `asking.ask`."""

from textual.message import Message


class HistoryChanged(Message, bubble=False):
    """The history changed and must be read again."""
