"""The form: the list of fields, and the line to type a field's value in."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.message import Message
from textual.suggester import SuggestFromList
from textual.widgets import Input, Label, Static

from lumitui.app.runs import (
    CheckedDraft,
    Field,
    LumiError,
    apply_fix,
    job_form,
    place_of_key,
    set_key,
)
from lumitui.app.tui.asking import show_error, tui
from lumitui.app.tui.panes.compose.field_list import FieldList
from lumitui.app.tui.widgets.input import LineInput
from lumitui.app.tui.widgets.styled import plain

_SHORT = 30
"""Most characters of a value that typing replaces; a longer one is edited from its end."""


class FieldInput(LineInput):
    """The line to type a field's value in."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "submit", "Keep", id="field.keep", tooltip="Accept the value"),
        Binding("escape", "leave", "Leave", id="field.leave", tooltip="Leave the field unchanged"),
    ]

    class Left(Message):
        """The user left the field without a new value."""

    def action_leave(self) -> None:
        self.post_message(self.Left())


class FormPane(Vertical):
    """The form of a draft. It edits the text; the screen checks the result."""

    @dataclass
    class Edited(Message):
        """The draft's text has changed."""

        text: str

    def __init__(self) -> None:
        super().__init__(id="form")
        self._text = ""
        self._field: Field | None = None

    def compose(self) -> ComposeResult:
        """Yield the fields, and the line for a value."""
        yield FieldList(id="fields")
        yield Static(id="field-help", markup=False)
        with Horizontal(id="field-line"):
            yield Label("", id="field-name", markup=False)
            yield FieldInput(id="field", compact=True)

    def on_mount(self) -> None:
        """Show the line only while the user types a value."""
        self._close()

    def show(self, checked: CheckedDraft) -> None:
        """Show the form of a checked draft."""
        self._text = checked.draft.text
        loose = job_form.loose(checked.problems) if checked.fields else checked.problems
        self.query_one(FieldList).show(checked.fields, loose)

    def has_text(self, text: str) -> None:
        """Edit this text from now on; it is checked later."""
        self._text = text

    # -- changes

    def _edit(self, edited: Callable[[str], str]) -> None:
        """Change the text by `edited`; show the error if that fails."""
        try:
            text = edited(self._text)
        except LumiError as error:
            show_error(self, error)
            return
        if text != self._text:
            self._text = text
            self.post_message(self.Edited(text))

    def _set(self, field: Field, text: str) -> None:
        self._edit(lambda now: set_key(now, place_of_key(field.key), job_form.read(field, text)))

    @on(FieldList.FixWanted)
    def _fix(self, event: FieldList.FixWanted) -> None:
        self._edit(lambda now: apply_fix(now, event.fix))
        self.notify(f"Fixed: {event.fix.words}.", markup=False)

    @on(FieldList.Stepped)
    def _stepped(self, event: FieldList.Stepped) -> None:
        # Keys may be faster than checks, so step from the text's value, not the displayed one.
        value = job_form.stepped(job_form.now(event.field, self._text), event.step)
        if value is not None:
            self._set(event.field, value)

    @on(FieldList.Cleared)
    def _cleared(self, event: FieldList.Cleared) -> None:
        self._set(event.field, "")

    @on(FieldList.Wanted)
    def _wanted(self, event: FieldList.Wanted) -> None:
        field = event.field
        if field.kind == "choice" and len(field.choices) > 1:
            from lumitui.app.tui.dialogs.pick import PickDialog

            def picked(value: str | None) -> None:
                if value is not None and field.key == "site":
                    self._edit(lambda now: tui(self).runs.drafts.at_site(now, value))
                elif value is not None:
                    self._set(field, value)

            self.app.push_screen(PickDialog(field.key, field.choices, field.value), picked)
            return
        self._field = field
        line = self.query_one("#field", FieldInput)
        line.value = field.value
        line.select_on_focus = len(field.value) <= _SHORT  # a letter would replace a long one
        line.cursor_position = len(field.value)
        names = [item.value for item in field.choices]
        line.suggester = SuggestFromList(names) if names else None
        self.query_one("#field-name", Label).update(plain(f"{field.key} "))
        self.query_one("#field-help", Static).update(plain(field.help))
        self.query_one("#field-line").display = True
        self.query_one("#field-help").display = True
        line.focus()

    @on(Input.Submitted, "#field")
    def _typed(self, event: Input.Submitted) -> None:
        event.stop()
        field = self._field
        if field is None:
            return
        try:
            value = job_form.read(field, event.value)
            text = set_key(self._text, place_of_key(field.key), value)
        except LumiError as error:  # the typed text stays, to be corrected
            self.query_one("#field-help", Static).update(plain(str(error), "bold red"))
            return
        self._close()
        self._edit(lambda _: text)

    @on(FieldInput.Left)
    def _close(self) -> None:
        self._field = None
        line = self.query_one("#field-line")
        held = line.has_focus_within
        line.display = False
        self.query_one("#field-help").display = False
        if held:
            self.query_one(FieldList).focus()
