"""The two lines at the bottom: what a mouse can press, and the keys."""

from rich.text import Text
from textual.containers import Horizontal
from textual.widget import Widget
from textual.widgets import Button, Footer


def footer() -> Footer:
    """Return the line of keys. A dialog has its own, which covers the one of the screen below."""
    return Footer(compact=True, show_command_palette=False)


def buttons(*pairs: tuple[str, str]) -> Widget:
    """Return a row of one-line buttons of (label, action of the screen or the app)."""
    return Horizontal(
        *(
            Button(
                Text(label),
                action=action if "app." in action else f"screen.{action}",
                compact=True,
                classes="action",
            )
            for label, action in pairs
        ),
        classes="buttons",
    )
