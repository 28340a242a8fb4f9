"""The profile of a site as a page, which is only read and closed."""

from datetime import date
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Static

from lumitui.app.explain.site_page import WIDE, page
from lumitui.app.tui.widgets.bars import footer
from lumitui.app.tui.widgets.scroll import Scroll
from lumitui.app.tui.widgets.styled import plain
from lumitui.remote.site.profile import Site

_FRAME = 8
"""Cells of the dialog's border, padding and scroll bar."""


class SitePageDialog(ModalScreen[None]):
    """What the profile of a site says, as `lumitui sites NAME` prints it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,p,q,enter", "close", "Close", id="site.close", tooltip="Close the page"),
    ]

    def __init__(self, site: Site) -> None:
        """Show the profile of `site`."""
        super().__init__()
        self._site = site

    def compose(self) -> ComposeResult:
        """Yield the page in a box that scrolls."""
        yield footer()
        with Vertical(classes="dialog help") as box:
            box.border_title = f"Profile of {self._site.name}"
            box.border_subtitle = "j k g G scroll"
            with Scroll():
                width = min(WIDE, self.app.size.width - _FRAME)
                yield Static(plain(page(self._site, date.today(), max(20, width))), markup=False)

    def action_close(self) -> None:
        """Close the dialog."""
        self.dismiss()
