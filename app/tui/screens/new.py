"""A new run: a job file as a form, as text, as the script it becomes and as a map of its nodes."""

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import ClassVar, Literal

from rich.text import Text
from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.timer import Timer
from textual.widget import Widget
from textual.widgets import Button, Input, Static, TextArea

from lumitui.app.runs import Runs
from lumitui.app.send.drafts.draft import Draft, save
from lumitui.app.send.drafts.drafts import Checked
from lumitui.app.tui import messages
from lumitui.app.tui.dialogs.confirm import Confirm
from lumitui.app.tui.dialogs.unsaved import Answer, LeaveDialog, SaveDialog
from lumitui.app.tui.panes.compose.field_list import FieldList
from lumitui.app.tui.panes.compose.form import FormPane
from lumitui.app.tui.panes.compose.node import NodePane
from lumitui.app.tui.panes.compose.start import StartList, beginning
from lumitui.app.tui.panes.compose.text import TextEditor, TextPane
from lumitui.app.tui.screens.page import FullScreen
from lumitui.app.tui.widgets import styled
from lumitui.app.tui.widgets.bars import buttons
from lumitui.app.tui.widgets.input import JobFileSuggester, LineInput
from lumitui.app.tui.widgets.launch_text import SEVERITY, cost_line, series_terms, terms
from lumitui.app.tui.widgets.script_view import ScriptView
from lumitui.remote.errors import InputError, LumiError

View = Literal["form", "yaml", "script", "node"]
VIEWS: dict[View, str] = {"form": "Form", "yaml": "YAML", "script": "Script", "node": "Node"}
WIDE = 120
"""Columns from which form, text or script, and node map stand beside each other."""
_PAUSE = 0.2  # seconds without a key before a text is checked
START = "Choose what to begin with, or type the path of a job file above and press enter."


def _path_of(text: str) -> Path:
    """Return the path that a person typed; `~` is the home folder."""
    return Path(os.path.expanduser(text))  # leaves `~nobody` as it is


class NewScreen(FullScreen):
    """What to begin with; then the four views of the draft, its price and the Submit button."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("s,ctrl+s", "submit", "Submit", id="new.submit",
                tooltip="Submit the job; asks first"),
        Binding("w,ctrl+w", "save", "Save", id="new.save", tooltip="Save the job file"),
        Binding("right_square_bracket", "next_view(1)", "View", key_display="[ ]",
                id="new.next", tooltip="Go to the next view: form, YAML, script, node map"),
        Binding("left_square_bracket", "next_view(-1)", "View before", show=False,
                id="new.previous", tooltip="Go to the view before"),
        Binding("e", "editor", "Editor", id="new.editor", tooltip="Edit the text in $EDITOR"),
        Binding("o", "start", "Open", id="new.open",
                tooltip="Begin with another file, an example or a run"),
        Binding("r", "again", "Read again", show=False, id="new.again",
                tooltip="Read the job file again"),
        Binding("f1", "view('form')", "Form", show=False, id="new.form", tooltip="Show the form"),
        Binding("f2", "view('yaml')", "YAML", show=False, id="new.yaml",
                tooltip="Show the text of the job file"),
        Binding("f3", "view('script')", "Script", show=False, id="new.script",
                tooltip="Show the job script, with what changed in it"),
        Binding("f4", "view('node')", "Node", show=False, id="new.node",
                tooltip="Show which rank has which cores and GPU"),
    ]  # fmt: skip

    def __init__(self, runs: Runs, job: Path | None = None) -> None:
        """Make a new run in `runs`, with the job file `job` already chosen."""
        super().__init__(runs)
        self._job = job
        self._draft: Draft | None = None
        self._opened = ""
        """The text that the draft began with: there is nothing to lose yet."""
        self._checked: Checked | None = None
        self._base: str | None = None
        self._view: View = "form"
        self._middle: View = "script"
        self._asked = 0
        self._checking = self._stale = False
        """Whether a check is under way, and whether its draft was edited since."""
        self._typing: Timer | None = None

    def body(self) -> ComposeResult:
        """Yield where the job file is, what to begin with, and the views."""
        yield LineInput(
            placeholder="path of a job file", id="path", compact=True, suggester=JobFileSuggester()
        )
        yield Static(START, id="start", markup=False)
        yield StartList()
        yield Static(id="views-line", markup=False)
        with Horizontal(id="views"):
            yield FormPane()
            yield TextPane()
            yield ScriptView(id="script-view")
            yield NodePane()
        yield Static(id="cost", markup=False)
        yield buttons(("Submit", "submit"), ("Save", "save"), ("Open", "start"), ("Back", "back"))

    def begin(self) -> None:
        """Open the given job file, or what was left unsaved, or offer beginnings."""
        self._offer(self._job.parent if self._job else Path.cwd())
        self._show_parts()
        self._enable()
        self.title_text("2 New")
        kept = getattr(self.app, "kept", None)
        if self._job:
            self._open("file", str(self._job))
        elif isinstance(kept, Draft):
            self._take(kept, opened="")
            self.notify("Your edits that were not saved are back.")

    @property
    def unsaved(self) -> Draft | None:
        """The draft that would be lost; None: nothing would."""
        draft = self._draft
        lost = draft is not None and draft.unsaved and draft.text != self._opened
        return draft if lost else None

    def on_unmount(self) -> None:
        """Keep what was not saved for the next time."""
        self.app.kept = self.unsaved  # type: ignore[attr-defined]  # of MutationApp

    # -- what to begin with

    def _offer(self, folder: Path) -> None:
        try:
            runs = self.runs.history.page(limit=20)
        except LumiError as error:
            runs = []
            self.post_message(messages.Failed(error))
        menu = self.query_one(StartList)
        menu.offer(folder, runs)
        menu.focus()

    def action_start(self) -> None:
        """Offer what to begin with."""
        self._guard(self._start_again)

    def _start_again(self) -> None:
        self._draft = self._checked = None
        self._asked += 1
        self.query_one("#path", Input).value = ""
        self.title_text("2 New")
        self._offer(Path.cwd())
        self._show_parts()
        self._enable()

    @on(StartList.OptionSelected)
    def _chosen(self, event: StartList.OptionSelected) -> None:
        kind, value = beginning(event.option.id or "")
        self._open(kind, value)

    @on(Input.Submitted, "#path")
    def _typed(self, event: Input.Submitted) -> None:
        path = _path_of(event.value.strip() or ".")
        if os.path.isdir(path):  # Path.is_dir() raises where a name is too long
            self._guard(lambda: self._to_folder(path))
        else:
            self._guard(lambda: self._open("file", str(path)))

    def _to_folder(self, path: Path) -> None:
        self._start_again()
        self._offer(path)

    def _open(self, kind: Literal["file", "example", "run"], value: str) -> None:
        self._asked += 1
        if kind == "file":
            self.query_one("#path", Input).value = value
        self.post_message(messages.DraftWanted(self, self._asked, kind, value))

    @on(messages.DraftOpened)
    def _draft_opened(self, event: messages.DraftOpened) -> None:
        if event.number == self._asked and event.draft is not None:
            self._take(event.draft, opened=event.draft.text)

    def _take(self, draft: Draft, opened: str) -> None:
        """Show another draft, which began as the text `opened`."""
        self._draft, self._opened, self._base = draft, opened, draft.base
        self._checked = None
        self.query_one("#path", Input).value = str(draft.path or "")
        self.query_one(FieldList).start_again()
        self.query_one(TextPane).load(draft.text, other=True)
        self._show_parts()
        self.action_view("form")
        self._check()

    # -- edits

    @on(FormPane.Edited)
    def _form_edited(self, event: FormPane.Edited) -> None:
        self._edit(event.text)
        self.query_one(TextPane).load(event.text)
        self._check()

    @on(TextArea.Changed)
    def _text_edited(self, event: TextArea.Changed) -> None:
        text = event.text_area.text
        if self._draft is None or text == self._draft.text:
            return  # what a form's edit has put there
        self._edit(text)
        self.query_one(FormPane).has_text(text)
        if self._typing is not None:
            self._typing.stop()
        self._typing = self.set_timer(_PAUSE, self._check)

    def _edit(self, text: str) -> None:
        if self._draft is not None:
            self._draft = self._draft.edited(text)
            self._asked += 1
            self._enable()
            self._draw_views_line()

    def _check(self) -> None:
        if self._draft is None:
            return
        self._asked += 1
        self._enable()
        # One check at a time: a key that is held down would begin ten in a second.
        self._stale = self._checking
        if not self._checking:
            self._checking = True
            self.post_message(messages.CheckWanted(self, self._asked, self._draft))

    @on(messages.DraftChecked)
    def _draft_checked(self, event: messages.DraftChecked) -> None:
        self._checking = False
        if self._stale:
            self._check()
        if event.number != self._asked or self._draft is None or event.checked is None:
            return  # it was edited meanwhile
        checked = self._checked = event.checked
        self.query_one(FormPane).show(checked)
        self.query_one(TextPane).show(checked)
        preview = checked.previews[0] if checked.previews else None
        if preview is not None:
            self.query_one(NodePane).show(preview)
            self._base = self._base if self._base is not None else preview.launch.script
            self.query_one(ScriptView).show(preview.command, preview.launch.texts, self._base)
        self._draw_cost(checked)
        self._draw_views_line()
        self._enable()

    def _draw_cost(self, checked: Checked) -> None:
        spec = checked.previews[0].launch.spec if checked.previews else None
        draft = checked.draft
        where = f"{spec.name}  {spec.site} {spec.partition}" if spec else draft.name
        self.title_text("2 New", f"from {draft.origin}", where)
        errors = len(checked.errors)
        if errors:
            count = "1 error" if errors == 1 else f"{errors} errors"
            text = Text.assemble((f"{count} to fix before it can be sent  ", SEVERITY["error"]))
            if checked.previews:
                text.append_text(cost_line(checked.previews))
        else:
            text = cost_line(checked.previews)
        self.query_one("#cost", Static).update(text)

    def _enable(self) -> None:
        """Let Submit be pressed only for what was checked and is right."""
        checked = self._checked
        now = checked is not None and self._draft is not None
        ready = now and checked is not None and checked.draft.text == self._draft_text()
        right = ready and checked is not None and bool(checked.previews) and not checked.errors
        self.query(".action").first(Button).disabled = not right

    def _draft_text(self) -> str:
        return self._draft.text if self._draft else ""

    # -- views

    def _panes(self) -> dict[View, Widget]:
        return {
            "form": self.query_one(FormPane), "yaml": self.query_one(TextPane),
            "script": self.query_one(ScriptView), "node": self.query_one(NodePane),
        }  # fmt: skip

    def on_resize(self, event: events.Resize) -> None:
        """Show as many views as there is room for."""
        self._show_parts()

    def _show_parts(self) -> None:
        if not self.query(NodePane):
            return  # not composed yet
        open_now, wide = self._draft is not None, self.size.width >= WIDE
        for name in ("#start", "#files"):
            self.query_one(name).display = not open_now
        for name in ("#views", "#views-line", "#cost"):
            self.query_one(name).display = open_now
        shown = {"form", self._middle, "node"} if wide else {self._view}
        for view, pane in self._panes().items():
            pane.display = view in shown
            pane.set_class(wide, "beside")
        self._draw_views_line()

    def _draw_views_line(self) -> None:
        text = Text(no_wrap=True, overflow="ellipsis")
        for key, (view, name) in enumerate(VIEWS.items(), 1):
            style = "bold reverse" if view == self._view else ""
            text.append(f" {name} ", style).append(f"F{key}  ", "dim")
        if self._checked is not None and not self._checked.previews:
            text.append("script and node of the last right text  ", "dim")
        if self.unsaved is not None:
            text.append("not saved", "bold yellow")
        self.query_one("#views-line", Static).update(text)

    def action_view(self, view: View) -> None:
        """Show a view, and give it the keys."""
        if self._draft is None:
            return
        self._view = view
        if view in ("yaml", "script"):
            self._middle = view
        self._show_parts()
        inside: dict[View, Widget] = {"form": self.query_one(FieldList),
                                      "yaml": self.query_one(TextEditor)}  # fmt: skip
        inside.get(view, self._panes()[view]).focus()

    def action_next_view(self, step: int) -> None:
        """Show the view `step` places on."""
        names = list(VIEWS)
        self.action_view(names[(names.index(self._view) + step) % len(names)])

    # -- files

    def action_again(self) -> None:
        """Read the job file again."""
        path = self._draft.path if self._draft else _path_of(self.query_one("#path", Input).value)
        if path is not None and str(path) != ".":
            self._guard(lambda: self._open("file", str(path)))

    def action_save(self) -> None:
        """Save the job file; ask for its path if it has none."""
        if self._draft is None:
            return
        if self._draft.path is not None:
            self._save(None)
            return

        def named(path: str | None) -> None:
            if path is not None:
                self._save(_path_of(path).absolute())

        self.app.push_screen(SaveDialog(str(self._draft.folder / "job.yaml")), named)

    def _save(self, path: Path | None) -> bool:
        assert self._draft is not None
        try:
            self._draft = save(self._draft, path)
        except LumiError as error:
            self.post_message(messages.Failed(error))
            return False
        if path is not None:
            self._draft = replace(self._draft, folder=path.parent, origin=path.name)
            self._check()
        self._opened = self._draft.text
        self.query_one("#path", Input).value = str(self._draft.path)
        self._draw_views_line()
        self.notify(f"Saved {self._draft.path}.", markup=False)
        return True

    def action_editor(self) -> None:
        """Edit the text in the person's editor."""
        if self._draft is None:
            return
        from lumitui.app.tui.panes.compose.editor import edited

        try:
            text = edited(self.app, self._draft.text)
        except LumiError as error:
            self.post_message(messages.Failed(error))
            return
        if text != self._draft.text:
            self._edit(text)
            self.query_one(TextPane).load(text)
            self._check()

    def _guard(self, then: Callable[[], object]) -> None:
        """Do `then`, after asking what becomes of edits that are not saved."""
        draft = self.unsaved
        if draft is None:
            then()
            return

        def answered(answer: Answer | None) -> None:
            if answer == "discard":
                self._opened = draft.text
                then()
            elif answer == "save" and draft.path is None:
                self.action_save()  # the path comes first; leaving is asked for again
            elif answer == "save" and self._save(None):
                then()

        self.app.push_screen(LeaveDialog(draft.name), answered)

    def action_back(self) -> None:
        """Leave the screen; edits that are not saved are asked about."""
        self._guard(super().action_back)

    # -- send

    def action_submit(self) -> None:
        """Ask, then send."""
        checked = self._checked
        if self._draft is None or checked is None:
            error = InputError("No job file has been read yet.", "Choose one first.")
            self.post_message(messages.Failed(error))
        elif checked.draft.text != self._draft.text:
            self.notify("The last edit is still being checked; try again in a moment.")
        elif checked.errors:
            self.notify(checked.errors[0].words, severity="error", markup=False)
            self.action_view("form")
        else:
            self._confirm(checked)

    def _confirm(self, checked: Checked) -> None:
        first, several = checked.previews[0], len(checked.previews) > 1 or checked.previews[0].cell

        def answered(yes: bool | None) -> None:
            if yes and several:
                self.post_message(messages.SeriesWanted(checked.previews))
            elif yes:
                self.post_message(messages.SendWanted(first))

        name = styled.shorten(first.launch.spec.name, 40)
        if several:
            title = f"Submit {len(checked.previews)} runs to {first.site.name}?"
            lines = series_terms(checked.previews)
        else:
            title, lines = f"Submit {name} to {first.launch.spec.site}?", terms(first)
        self.app.push_screen(Confirm(title, lines, "Submit"), answered)
