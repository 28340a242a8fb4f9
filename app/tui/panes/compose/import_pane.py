"""The report of an import: losses first, since the user must check them."""

from itertools import groupby

from rich.text import Text
from textual.app import ComposeResult
from textual.widgets import Static

from lumitui.app.runs import Draft
from lumitui.app.tui.widgets.scroll import Scroll
from lumitui.app.tui.widgets.styled import plain

_STYLES = {"lost": "bold red", "changed": "bold yellow", "site": "bold"}


class ImportPane(Scroll):
    """The report of an import in a few lines; when focused, in most of the screen."""

    def __init__(self) -> None:
        super().__init__(id="imported", classes="frame")

    def compose(self) -> ComposeResult:
        yield Static(id="import-report", markup=False)

    def show(self, draft: Draft | None) -> None:
        """Show how a draft was imported, if it was."""
        parts = draft.imported if draft else ()
        self.display = bool(parts)
        lines = [
            Text.assemble((f"{title}: ", _STYLES.get(title, "dim")), plain(text))
            for title, text in parts
        ]
        self.query_one("#import-report", Static).update(Text("\n").join(lines))
        self.scroll_home(animate=False)
        several = {title: len([*group]) for title, group in groupby(title for title, _ in parts)}
        shown = [f"{several[title]} {title}" for title in ("lost", "changed") if title in several]
        site = next((text.split(",")[0] for title, text in parts if title == "site"), "")
        self.border_title = f"From your script, guessed for {site}" if site else "From your script"
        self.border_subtitle = f"{', '.join(shown)}  I read all".strip()
