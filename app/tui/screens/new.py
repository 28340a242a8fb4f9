"""A new run: a job file becomes a launch that a person reads, confirms and sends."""

import os
from pathlib import Path
from typing import ClassVar

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.widgets import Button, Input, OptionList, Static, TabbedContent, TabPane
from textual.widgets.option_list import Option

from lumitui.app.compose.binding import draw as draw_node
from lumitui.app.runs import Runs
from lumitui.app.send.preview import Preview
from lumitui.app.tui import messages
from lumitui.app.tui.dialogs.confirm import Confirm
from lumitui.app.tui.screens.page import FullScreen
from lumitui.app.tui.widgets import styled
from lumitui.app.tui.widgets.bars import buttons
from lumitui.app.tui.widgets.input import LineInput
from lumitui.app.tui.widgets.launch_text import summary, terms
from lumitui.app.tui.widgets.script_view import ScriptView
from lumitui.remote.errors import InputError

NOTHING = """Choose a job file above, or type its path and press enter.

A job file says what to run and where, in YAML:

  name: hello
  site: laptop
  partition: local
  time: "00:10:00"
  script: hello.py"""


def _path_of(text: str) -> Path:
    """Return the path that a person typed; `~` is the home folder."""
    return Path(os.path.expanduser(text))  # leaves `~nobody` as it is


def job_files(folder: Path) -> list[Path]:
    """Return the files in `folder` that may be job files: YAML that names a site."""
    found = []
    for path in sorted(folder.glob("*.y*ml")):
        try:
            if not path.is_file():
                continue  # a pipe would be waited for
            with path.open("rb") as file:
                head = file.read(20_000).decode("utf-8", "replace")
        except OSError:
            continue  # choosing it by its path shows why
        if any(line.startswith("site:") for line in head.splitlines()):
            found.append(path)
    return found


class NewScreen(FullScreen):
    """The path, the folder's job files, the launch as it would be sent, and the Submit button."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("s", "submit", "Submit", id="new.submit", tooltip="Submit the job; asks first"),
        Binding("r", "again", "Read again", id="new.again", tooltip="Read the job file again"),
    ]

    def __init__(self, runs: Runs, job: Path | None = None) -> None:
        """Make a new run in `runs`, with the job file `job` already chosen."""
        super().__init__(runs)
        self._job = job
        self._preview: Preview | None = None
        self._asked = 0

    def body(self) -> ComposeResult:
        """Yield where the job file is, then its launch."""
        yield LineInput(placeholder="path of a job file", id="path", compact=True)
        yield OptionList(id="files", compact=True, markup=False)
        with TabbedContent(id="parts"):
            with TabPane("Check", id="check"), VerticalScroll():
                yield Static(NOTHING, id="summary", markup=False)
            with TabPane("Script", id="script"):
                yield ScriptView(id="script-view")
            with TabPane("Node", id="node"), VerticalScroll():
                yield Static(id="map", markup=False)
        yield buttons(("Submit", "submit"), ("Read again", "again"), ("Back", "back"))

    def begin(self) -> None:
        """Offer the job files of the current folder."""
        self._offer(self._job.parent if self._job else Path.cwd())
        self._enable()
        self.title_text("2 New")
        if self._job:
            self.query_one("#path", Input).value = str(self._job)
            self._read(self._job)
        elif not self.query_one(OptionList).option_count:
            self.query_one("#path").focus()

    def _offer(self, folder: Path) -> None:
        files = job_files(folder)
        menu = self.query_one(OptionList)
        menu.clear_options()
        menu.add_options(Option(styled.plain(path.name), id=str(path)) for path in files)
        menu.display = bool(files)
        menu.highlighted = 0 if files else None
        menu.focus()

    def _read(self, path: Path) -> None:
        self._preview = None
        self._enable()
        self.query_one("#summary", Static).update(styled.plain(f"Reading {path} …"))
        self._asked += 1
        self.post_message(messages.PreviewWanted(self, self._asked, path))

    def _enable(self) -> None:
        ready = self._preview is not None and not self._preview.errors
        self.query(".action").first(Button).disabled = not ready

    @on(OptionList.OptionSelected)
    def _chosen(self, event: OptionList.OptionSelected) -> None:
        path = Path(event.option.id or "")
        self.query_one("#path", Input).value = str(path)
        self._read(path)

    @on(Input.Submitted, "#path")
    def _typed(self, event: Input.Submitted) -> None:
        path = _path_of(event.value.strip() or ".")
        if os.path.isdir(path):  # Path.is_dir() raises where a name is too long
            self._offer(path)
        else:
            self._read(path)

    @on(messages.PreviewMade)
    def _made(self, event: messages.PreviewMade) -> None:
        if event.number != self._asked:
            return  # another file was chosen meanwhile
        self._preview = event.preview
        self._enable()
        if event.preview is None:
            words = styled.plain(f"{event.path} cannot be sent as it is.\n\nFix it, then press r.")
            self.query_one("#summary", Static).update(words)
            return
        self._show(event.preview)

    def _show(self, preview: Preview) -> None:
        spec = preview.launch.spec
        self.title_text("2 New", spec.name, f"{spec.site} {spec.partition}")
        self.query_one("#summary", Static).update(summary(preview))
        self.query_one(ScriptView).show(preview.command, preview.launch.texts)
        try:
            words = draw_node(preview.site, preview.launch.layout.ranks_per_node)
        except InputError as error:
            words = str(error)
        self.query_one("#map", Static).update(Text(words))
        self.query(".action").first(Button).focus()

    def action_again(self) -> None:
        """Read the job file again."""
        path = self.query_one("#path", Input).value
        if path:
            self._read(_path_of(path))

    def action_submit(self) -> None:
        """Ask, then send."""
        preview = self._preview
        if preview is None:
            error = InputError("No job file has been read yet.", "Choose one first.")
            self.post_message(messages.Failed(error))
        elif preview.errors:
            first = preview.errors[0]
            self.post_message(messages.Failed(InputError(first.message, first.do)))
        else:
            self._confirm(preview)

    def _confirm(self, preview: Preview) -> None:
        def answered(yes: bool | None) -> None:
            if yes:
                self.post_message(messages.SendWanted(preview))

        spec = preview.launch.spec
        title = f"Submit {spec.name} to {spec.site}?"
        self.app.push_screen(Confirm(title, terms(preview), "Submit"), answered)
