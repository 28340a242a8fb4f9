"""The profile of a site as a page, which is only read and closed."""

from datetime import date
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Static

from lumitui.app.explain.site_page import WIDE, page
from lumitui.app.runs import Site
from lumitui.app.tui.widgets.bars import footer
from lumitui.app.tui.widgets.scroll import Scroll
from lumitui.app.tui.widgets.styled import plain


class SitePageDialog(ModalScreen[None]):
    """What the profile of a site says, as `lumitui site show NAME` prints it."""

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
                yield Static(markup=False)

    def on_resize(self) -> None:
        """Wrap the page at the width that the box gets."""
        self.call_after_refresh(self._lay_out)

    def _lay_out(self) -> None:
        drawn = self.query_one("Scroll Static", Static)
        text = page(self._site, date.today(), max(20, min(WIDE, drawn.size.width)))
        drawn.update(plain(text))

    def action_close(self) -> None:
        """Close the dialog."""
        self.dismiss()
