"""The job file as text, with invalid lines marked."""

import re
from collections.abc import Mapping, Sequence
from typing import ClassVar

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.geometry import Offset
from textual.highlight import highlight
from textual.strip import Strip
from textual.widgets import Static, TextArea
from textual.widgets.text_area import Selection, TextAreaTheme

from lumitui.app.runs import CheckedDraft, Field, Finding
from lumitui.app.tui.widgets.launch_text import SEVERITY
from lumitui.app.tui.widgets.styled import phrase, plain

_NUMBER = re.compile(r"(?<=[:,\[ -])(?<![\w] )[-+]?\d[\d_]*(\.\d*)?(e[-+]?\d+)?(?=\s*($|[],}#]))")
_QUOTED = re.compile(r'"[^"]*"')
_COLOURS = {"$text-primary bold": "blue", "$text-success": "green", "$text 60%": "bright_black"}
"""The colours of keys, quoted text and comments, from Textual's highlighter."""
_KEY = re.compile(r"\w+(?=:)")
_COMMENT = re.compile(r"\w+:.*?[ \t](?=# )")
"""A key's line up to its comment; in linear time, whatever is pasted."""
_KEYS = 15  # columns for a key
_WIDEST = 24  # columns for a choice; longer ones, like images, are not aligned
_MOST_KEYS = 8  # maximum keys or choices below the text
_MOST = 4  # maximum problems below the text; the form has all
_HINT = Style(color="cyan", dim=True, italic=True)
_GAP = 2  # columns between the text and the hints
_LEAST_LINES = 6  # of the text, whatever is below it
_MOST_LINES = 10  # below the text
_LEAST = 12  # minimum columns for a hint
IN_YAML = {
    "args": "the program's arguments: [--epochs, 10]",
    "grid": "a sweep, one run per combination: {lr: [0.01, 0.02]}",
    "env": "the program's environment variables: {NAME: VALUE}",
    "metrics": "curves from the log: {loss: 'loss ([0-9.]+)'}",
}
"""The help of keys whose values have another syntax in the form."""


class _Theme(TextAreaTheme):
    """The colours of the app's theme; the cursor's line keeps those of its words."""

    def apply_css(self, text_area: TextArea) -> None:
        super().apply_css(text_area)
        line = self.cursor_line_style
        self.cursor_line_style = line and Style(bgcolor=line.bgcolor)


class TextEditor(TextArea):
    """The text, with invalid lines underlined, and a hint behind a line: what its value means."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "screen.view('form')", "Form", id="text.leave",
                tooltip="Leave the text; keeps all edits"),
        Binding("ctrl+w", "screen.save", "Save", id="text.save",
                tooltip="Save the job file"),
        Binding("ctrl+z", "undo", "Undo", id="text.undo", tooltip="Undo the last edit"),
    ]  # fmt: skip

    def __init__(self) -> None:
        super().__init__(
            id="text", show_line_numbers=True, soft_wrap=False, tab_behavior="focus", compact=True
        )
        self.register_theme(_Theme("job"))
        self.theme = "job"
        self._wrong: frozenset[int] = frozenset()
        self._hints: Mapping[str, str] = {}
        self._column = 0
        self._first: int | None = None
        """The cursor's line in a text just opened, until the user moves it."""

    def begin(self, text: str) -> None:
        """Show another text from its first line, with the cursor at its first key."""
        self.load_text(text)
        lines = text.split("\n")
        self._begin_at(next((at for at, line in enumerate(lines) if _KEY.match(line)), 0))

    def settle(self, height: int) -> None:
        """Begin at the first line if the first key is not in the first `height` lines."""
        if self._first is not None and self._first >= height:
            self._begin_at(0)

    def _begin_at(self, line: int) -> None:
        self._first = line
        # A watched change would scroll the lines above the cursor out of sight.
        self.set_reactive(TextArea.selection, Selection.cursor((line, 0)))
        self.post_message(self.SelectionChanged(self.selection, self))
        self.refresh()

    def scroll_cursor_visible(self, center: bool = False, animate: bool = False) -> Offset:
        """Scroll to the cursor once the user has moved it."""
        if self._first is not None and self.selection.end == (self._first, 0):
            return Offset(0, 0)  # the focus or a scroll bar would hide the first lines
        self._first = None
        return super().scroll_cursor_visible(center, animate)

    def mark(self, lines: frozenset[int], hints: Mapping[str, str]) -> None:
        """Underline the 1-based `lines`, and show `hints`, each behind the line of its key."""
        if (lines, hints) != (self._wrong, self._hints):
            self._wrong, self._hints = lines, hints
            texts = self.text.split("\n")
            keys = filter(None, map(_KEY.match, texts))
            ends = (len(key.string) + _GAP for key in keys if key[0] in hints)
            comment = next(filter(None, map(_COMMENT.match, texts)), None)
            self._column = max(ends, default=0) if comment is None else comment.end()
            self.notify_style_update()  # drops the lines already drawn
            self.refresh()

    def get_line(self, line_index: int) -> Text:
        line = super().get_line(line_index)
        # Reads a single line, so that a key costs the lines on the screen, not the file.
        line.highlight_regex(_NUMBER, "yellow")
        line.highlight_regex(_QUOTED, "green")  # in the second line of a list, too
        for span in highlight(line.plain, language="yaml").spans:
            line.stylize(_COLOURS.get(str(span.style), ""), span.start, span.end)
        if line_index + 1 in self._wrong:
            line.stylize("bold underline")
        return line

    def render_line(self, y: int) -> Strip:
        """Return a drawn line, with its hint where it has room behind the text and no comment."""
        drawn, at = super().render_line(y), y + self.scroll_offset.y
        if at >= self.document.line_count or self.scroll_offset.x:
            return drawn
        line = self.document.get_line(at)
        key = _KEY.match(line)
        hint = self._hints.get(key[0], "") if key and at != self.cursor_location[0] else ""
        begin = self.gutter_width + max(self._column, cell_len(line) + _GAP)
        width = self.size.width - begin
        if not hint or width < _LEAST or _COMMENT.match(line):
            return drawn
        hint = phrase(hint, width)
        words = Strip([Segment(hint, _HINT)]).apply_style(list(drawn)[-1].style or _HINT)
        rest = drawn.crop(begin + cell_len(hint), self.size.width)
        return Strip.join([drawn.crop(0, begin), words, rest])


class TextPane(Vertical, can_focus=True):
    """The text of a draft; below it, errors, and the help of the key under the cursor.

    It can have the focus itself, so that `]` passes the text, which would take it.
    """

    def __init__(self) -> None:
        super().__init__(id="yaml")
        self._checked: CheckedDraft | None = None
        self._fields: Sequence[Field] = ()  # the fields of the last valid text

    def compose(self) -> ComposeResult:
        """Yield the text, then the errors and the help."""
        yield TextEditor()
        yield Static(id="text-notes", markup=False)

    def load(self, text: str, *, other: bool = False) -> None:
        """Show an edited text, which ctrl+z reverts, or another draft's text (`other`).

        The cursor stays in place if possible.
        """
        area = self.query_one(TextEditor)
        if other:
            area.begin(text)
            return
        if area.text == text:
            return
        at = area.cursor_location
        area.replace(text, area.document.start, area.document.end)
        line = min(at[0], area.document.line_count - 1)
        area.cursor_location = (line, min(at[1], len(area.document.get_line(line))))

    def show(self, checked: CheckedDraft) -> None:
        """Mark the errors in a checked draft."""
        errors = frozenset(item.at.line for item in checked.errors if item.at.line)
        self._checked, self._fields = checked, checked.fields or self._fields
        self.query_one(TextEditor).mark(errors, hints(self._fields))
        self._draw_notes()

    @on(TextArea.SelectionChanged)
    def _draw_notes(self) -> None:
        if (checked := self._checked) is None:
            return
        wrong = [item for item in checked.problems if item.severity != "note"]
        lines = [_problem(item) for item in wrong[:_MOST]]
        if len(wrong) > _MOST:
            lines.append(Text(f"… and {len(wrong) - _MOST} more, in the form"))
        area = self.query_one(TextEditor)
        above = area.text.split("\n")[: area.cursor_location[0] + 1]
        key = next((found[0] for line in reversed(above) if (found := _KEY.match(line))), "")
        if ":" not in above[-1] and above[-1][:1] != " ":
            lines += possible_keys(self._fields, above[-1].strip(), self.size.width - 2)
        else:
            for field in self._fields:
                if key == field.key.partition(".")[0]:
                    lines += field_help(field, self.size.width - 2)
        self.query_one("#text-notes", Static).update(Text("\n").join(lines))
        width = max(1, self.size.width - 2)
        height = 1 + sum(-(-max(1, line.cell_len) // width) for line in lines)
        most = max(_LEAST_LINES, self.size.height - min(height, _MOST_LINES))
        area.styles.max_height = most
        if self.size.height:
            area.settle(most)

    def on_resize(self) -> None:
        """Fit the help to the width."""
        self._draw_notes()


def _problem(item: Finding) -> Text:
    place = f"line {item.at.line}: "
    named = item.at.line and place not in item.words
    severity = (f"{item.severity}: ", SEVERITY[item.severity])
    return Text.assemble(severity, place if named else "", plain(item.words))


def possible_keys(fields: Sequence[Field], typed: str, width: int) -> list[Text]:
    """Return a line for each field that begins with `typed` and that the text lacks."""
    lacking = [one for one in fields if not one.value and "." not in one.key]
    found = [one for one in lacking if one.key.startswith(typed)]
    lines = [
        Text.assemble(f"{one.key:<{_KEYS}}", (phrase(_help(one), width - _KEYS), "dim"))
        for one in found[:_MOST_KEYS]
    ]
    more = len(found) - _MOST_KEYS
    return [*lines, Text(f"{more} more: type the first letters", "dim")] if more > 0 else lines


def _help(field: Field) -> str:
    """Return the help of a field, with the syntax of its value in YAML."""
    return IN_YAML.get(field.key, field.help + ": [A, B]" * (field.kind == "words"))


def field_help(field: Field, width: int) -> list[Text]:
    """Return the help of a field, then its choices, the current one bold."""
    shown = field.choices[:_MOST_KEYS]
    sizes = [len(field.key), *(len(choice.value) for choice in shown)]
    longest = max(size for size in sizes if size <= _WIDEST)
    lines = [Text.assemble((f"{field.key:<{longest}}  ", "bold magenta"), (_help(field), "dim"))]
    for choice in shown:
        style = "bold" if choice.value == field.shown else ""
        meaning = phrase(choice.words, width - longest - 2)
        lines.append(Text.assemble((f"{choice.value:<{longest}}  ", style), (meaning, "dim")))
    return lines


def hints(fields: Sequence[Field]) -> dict[str, str]:
    """Return what the values of fields mean, by key: a partition's limits, a trainer's task."""
    chosen = ((one.key, choice) for one in fields if one.value for choice in one.choices)
    values = {one.key: one.value for one in fields}
    return {key: choice.words for key, choice in chosen if choice.value == values[key]}
