"""The filter of the runs: an input line, the active terms, and errors with their position."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.message import Message
from textual.widgets import Input, Static

from lumitui.app.explain import words
from lumitui.app.tui.widgets import styled
from lumitui.app.tui.widgets.input import FilterInput

if TYPE_CHECKING:
    # The filter language is imported on first use.
    from lumitui.app.runs import FilterError, FilterTerm


class RunFilter(Vertical):
    """An input line, shown while typing, above the active terms."""

    @dataclass
    class Changed(Message):
        """The filter has changed."""

        terms: tuple[FilterTerm, ...]

    class Left(Message):
        """The user left the line: keys act on the runs again."""

    def __init__(self) -> None:
        super().__init__(id="filtering")
        self.terms: tuple[FilterTerm, ...] = ()
        """The active terms, without invalid ones."""
        self._found = 0
        self._input = FilterInput(id="filter", compact=True)

    def compose(self) -> ComposeResult:
        """Yield the effect; the input line is mounted when it opens."""
        yield Static(id="chips", markup=False)

    def open(self) -> None:
        """Open the input line."""
        from lumitui.app.runs import FILTER_EXAMPLES

        if not self._input.is_attached:
            self.mount(self._input, before=0)
        self._input.placeholder = FILTER_EXAMPLES
        self._input.display = True
        self._input.focus()

    def clear(self) -> None:
        """Match all runs, and close the input line."""
        self._input.value = ""
        self._input.display = False

    def found(self, number: int) -> None:
        """Show how many runs match."""
        if number != self._found:
            self._found = number
            self._typed()

    @on(Input.Changed, "#filter")
    def _typed(self) -> None:
        terms, error = self._read()
        if terms != self.terms:
            self.terms = terms
            self.post_message(self.Changed(terms))
        self._draw(error)

    def _read(self) -> tuple[tuple[FilterTerm, ...], FilterError | None]:
        if not self._input.value:
            return (), None
        from lumitui.app.runs import parse_typed_filter

        return parse_typed_filter(self._input.value)

    @on(Input.Submitted, "#filter")
    def _submitted(self) -> None:
        self._input.display = False
        self.post_message(self.Left())

    def _draw(self, error: FilterError | None) -> None:
        chips, text = self.query_one("#chips", Static), self._input.value
        chips.display = bool(text.strip())
        if chips.display:
            chips.set_class(error is not None, "wrong")
            chips.update(_wrong(text, error) if error else _active(self.terms, self._found))


def _active(terms: tuple[FilterTerm, ...], found: int) -> Text:
    line = Text(f"{words.count(found, 'run')} ")
    for term in terms:
        line.append(" ").append(styled.plain(f" {term.typed} ", "reverse"))
    return line.append("  esc shows all", "dim")


def _wrong(text: str, error: FilterError) -> Text:
    """Return a mark below the invalid characters, and the error."""
    before = cell_len(text[: error.begin])
    under = "^" * max(1, cell_len(text[error.begin : error.end]))
    # Far to the right, the error would not fit after the mark, so the mark precedes it there.
    if before + len(under) > 30:
        before, under = 0, f"{text[error.begin : error.end]}:"
    return Text(" " * before).append(styled.plain(f"{under} {error}", "bold yellow"))
