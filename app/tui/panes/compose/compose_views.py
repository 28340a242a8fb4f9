"""The four views of a draft: its form, its text, its script, its node map."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Grid, Vertical
from textual.content import Content
from textual.message import Message
from textual.timer import Timer
from textual.widget import Widget
from textual.widgets import Static, TextArea

from lumitui.app.runs import CheckedDraft, Draft
from lumitui.app.tui.panes.compose.field_list import FieldList
from lumitui.app.tui.panes.compose.form_pane import FormPane
from lumitui.app.tui.panes.compose.node_map_pane import NodePane
from lumitui.app.tui.panes.compose.text_pane import TextEditor, TextPane
from lumitui.app.tui.widgets.choice_button import neighbour
from lumitui.app.tui.widgets.script_view import ScriptView

View = Literal["form", "yaml", "script", "node"]
VIEWS: dict[View, str] = {"form": "Form", "yaml": "YAML", "script": "Script", "node": "Node"}
WIDE = 120
"""Minimum columns to show views side by side."""
WIDER = 160
"""Minimum columns to show the script beside the text and the node map below it."""
TALL = 36
"""Minimum lines to show the node map below the form or the text."""
ROOM = 16
"""Minimum lines besides the text to show the node map below it, not at its right."""
_PAUSE = 0.2  # seconds without a key before a text is checked


def beside(opened: View, edited: View, width: int, height: int, lines: int = 0) -> tuple[View, ...]:
    """Return the views shown together on a screen of `width` columns and `height` lines.

    `edited` is the form or the YAML, whichever was opened last: both have the same content, of
    `lines` lines as text.
    """
    if width < WIDE:
        return ("yaml", "node") if opened == "yaml" and height - lines >= ROOM else (opened,)
    if opened == "yaml" and width < WIDER and (height < TALL or height - lines >= ROOM):
        return ("yaml", "node")
    if height < TALL:
        return ("node" if opened == "node" else edited, "script")
    if edited == "yaml" and opened != "yaml" and width < WIDER:
        return ("yaml", opened)
    return (edited, "node", "script")


class DraftViews(Vertical):
    """The views of one draft, as many side by side as fit."""

    @dataclass
    class Edited(Message):
        """The draft's text has changed."""

        text: str

    class CheckDue(Message):
        """The edited text should be checked now."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "edit", "Edit", id="new.edit", tooltip="Edit the text of the job file")
    ]

    def __init__(self) -> None:
        super().__init__(id="draft")
        self._text = ""
        self._base: str | None = None  # the job.sh to compare the script with
        self._since = ""
        self._view: View = "form"
        self._edited: View = "form"
        self._typing: Timer | None = None
        self._stale = False  # whether script and node map belong to an earlier text
        self._saved = Content()

    def compose(self) -> ComposeResult:
        """Yield the views' names, then the views."""
        yield Static(id="views-line", markup=False)
        with Grid(id="views"):
            yield FormPane()
            yield TextPane()
            yield ScriptView(id="script-view")
            yield NodePane()

    # -- the draft

    def begin(self, draft: Draft) -> None:
        """Show another draft, its form first."""
        self._text, self._base = draft.text, draft.base
        self._since = " since you opened it" if draft.base is None else " since the last run"
        self._stale = False
        self.query_one(FieldList).start_again()
        self.query_one(TextPane).load(draft.text, other=True)
        self.open("form")

    def write(self, text: str) -> None:
        """Show a new text of the draft."""
        self._change(text)
        self.query_one(TextPane).load(text)
        self.post_message(self.CheckDue())

    def check(self, checked: CheckedDraft) -> None:
        """Show the findings of the draft."""
        self.query_one(FormPane).show(checked)
        self.query_one(TextPane).show(checked)
        preview = checked.previews[0] if checked.previews else None
        if preview is not None:
            self.query_one(NodePane).show(preview)
            self._base = self._base if self._base is not None else preview.launch.script
            later = {one.cell: one.launch.script for one in checked.previews if one.follows}
            texts = {**preview.launch.texts, **later}
            self.query_one(ScriptView).show(preview.command, texts, self._base, self._since)
        self._stale = preview is None
        self._show_parts()

    def mark(self, *, saved: bool, unsaved: bool, changed: bool) -> None:
        """Show whether the draft is in its file, or has edits that nothing has.

        `changed`: whether another program changed the file.
        """
        words = "changed on disk (f1, r reloads)" if changed else "not saved" * unsaved
        said = Content.styled(words, "$text-warning") if words else Content("saved" * saved)
        if said != self._saved:
            self._saved = said
            self._draw_names()

    # -- edits

    def _change(self, text: str) -> None:
        self._text = text
        self.post_message(self.Edited(text))

    @on(FormPane.Edited)
    def _form_edited(self, event: FormPane.Edited) -> None:
        event.stop()
        self.write(event.text)

    @on(TextArea.Changed)
    def _text_edited(self, event: TextArea.Changed) -> None:
        text = event.text_area.text
        if text == self._text:
            return  # the text set by an edit in the form
        self._change(text)
        self.query_one(FormPane).has_text(text)
        if self._typing is not None:
            self._typing.stop()
        self._typing = self.set_timer(_PAUSE, lambda: self.post_message(self.CheckDue()))

    # -- the choice of views

    def on_resize(self, event: events.Resize) -> None:
        """Show as many views as fit."""
        self._show_parts()

    def _panes(self) -> dict[View, Widget]:
        return {
            "form": self.query_one(FormPane), "yaml": self.query_one(TextPane),
            "script": self.query_one(ScriptView), "node": self.query_one(NodePane),
        }  # fmt: skip

    def _show_parts(self) -> None:
        lines = self._text.count("\n") + 1
        shown = beside(self._view, self._edited, *self.app.size, lines)
        for view, pane in self._panes().items():
            pane.add_class("frame")
            pane.display = view in shown
        many, text, node = len(shown), "yaml" in shown, self.query_one(NodePane)
        right = self._view == "yaml" and self.app.size.width < WIDER
        right = right and many > 1 and self.app.size.height - lines < ROOM
        rows = many > 1 and "node" in shown and (not right or many == 3)
        columns = right or (many > 1 and "script" in shown)
        classes = {
            "-two-rows": rows, "-two-columns": columns, "-three": many == 3,
            "-text": text, "-right": right,
        }  # fmt: skip
        for name, applies in classes.items():
            self.query_one("#views").set_class(applies, name)
        node.set_class(rows or right, "below")
        most = self.size.height * (6 if text else 5) // 10
        node.styles.max_height = most if rows else None
        node.shows_ranks = "form" not in shown and self.app.size.width >= WIDE
        node.draw_map()
        self._draw_names()

    def _draw_names(self) -> None:
        """Show the views' names: in a line if there are no frames, else in the frames' titles."""
        panes = self._panes()
        names = {}
        for key, (view, name) in enumerate(VIEWS.items(), 1):
            style = "bold $text" if view == self._view else "$text 60%"
            names[view] = Content.assemble((f"F{key}", "$text-accent"), (f" {name}", style))
        line = Content("   ").join(names.values())
        node = self.query_one(NodePane)
        stale = Content("of the last valid text" * self._stale).stylize("$text-warning")
        alone = self.app.size.width < WIDE
        both = names["form"] + "   " + names["yaml"]  # they share a frame
        for view, pane in panes.items():
            title = both if view in ("form", "yaml") else names[view]
            if alone:  # the opened view names all
                title = line if view == self._view else Content(VIEWS[view])
            pane.border_title = title
            pane.border_subtitle = self._saved if view == self._edited else stale
            if pane is node:
                node.entitle(title, stale)
        words = Content("   ").join(filter(None, (line, self._saved, stale)))
        self.query_one("#views-line", Static).update(words)

    def open(self, view: View, *, text: bool = True) -> None:
        """Show a view and focus it; the YAML takes keys as text only if `text` is set."""
        self._view = view
        if view in ("form", "yaml"):
            self._edited = view
        self._show_parts()
        inside = {"form": FieldList, "yaml": TextEditor if text else TextPane}
        (self.query_one(inside[view]) if view in inside else self._panes()[view]).focus()

    def open_line(self, line: int) -> None:
        """Edit the text at a 1-based line; the cursor stays in place if the line is 0."""
        self.open("yaml")
        if line:
            self.query_one(TextEditor).move_cursor((line - 1, 0))

    @on(FieldList.LineWanted)
    def _line_wanted(self, event: FieldList.LineWanted) -> None:
        self.open_line(event.line)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer to edit only the text."""
        return action != "edit" or self.query_one(TextPane).has_focus

    def action_edit(self) -> None:
        self.open("yaml")

    def step(self, step: int) -> None:
        """Show the view `step` places to the right."""
        self.open(neighbour(list(VIEWS), self._view, step), text=False)
