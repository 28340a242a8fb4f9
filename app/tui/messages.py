"""What every screen that is seen hears; what one of them wants to know it asks by `asking.ask`."""

from textual.message import Message


class HistoryChanged(Message, bubble=False):
    """Something in history changed: read it again."""
