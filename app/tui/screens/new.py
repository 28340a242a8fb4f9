"""A new run: a job file becomes a launch that is looked at, confirmed and sent."""

from pathlib import Path
from typing import ClassVar

from rich.console import Group
from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.widgets import Button, Input, OptionList, Static, TabbedContent, TabPane
from textual.widgets.option_list import Option

from lumitui.app.compose.binding import draw as draw_node
from lumitui.app.runs import Preview, Runs
from lumitui.app.tui import messages
from lumitui.app.tui.screens.dialogs import Confirm, facts
from lumitui.app.tui.screens.page import Page, buttons
from lumitui.app.tui.widgets import wording
from lumitui.app.tui.widgets.input import Line
from lumitui.app.tui.widgets.script_view import ScriptView
from lumitui.remote.errors import InputError

SEVERITY = {"error": "bold red", "warning": "yellow", "note": "cyan"}

NOTHING = """Choose a job file above, or type its path and press enter.

A job file says what to run and where, in YAML:

  name: hello
  site: laptop
  partition: local
  time: "00:10:00"
  script: hello.py"""


def job_files(folder: Path) -> list[Path]:
    """Return what may be a job file in `folder`: YAML that names a site."""
    found = []
    for path in sorted(folder.glob("*.y*ml")):
        try:
            if not path.is_file():
                continue  # a pipe would be waited for
            with path.open("rb") as file:
                head = file.read(20_000).decode("utf-8", "replace")
        except OSError:
            continue  # choosing it by its path tells why
        if any(line.startswith("site:") for line in head.splitlines()):
            found.append(path)
    return found


class NewScreen(Page):
    """Path, what is in the folder, the launch as it would be sent, and the button that sends."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("s", "submit", "Submit", id="new.submit", tooltip="Send it, after asking"),
        Binding("r", "again", "Read again", id="new.again", tooltip="Read the job file again"),
    ]

    def __init__(self, runs: Runs, job: Path | None = None) -> None:
        """A new run over `runs`, with `job` already chosen."""
        super().__init__(runs)
        self._job = job
        self._preview: Preview | None = None
        self._asked = 0

    def body(self) -> ComposeResult:
        """Where the job file is, then what it comes to."""
        yield Line(placeholder="path of a job file", id="path", compact=True)
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
        """Offer what is here."""
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
        menu.add_options(Option(wording.plain(path.name), id=str(path)) for path in files)
        menu.display = bool(files)
        menu.highlighted = 0 if files else None
        menu.focus()

    def _read(self, path: Path) -> None:
        self._preview = None
        self._enable()
        self.query_one("#summary", Static).update(wording.plain(f"Reading {path} …"))
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
        path = Path(event.value.strip() or ".").expanduser()
        if path.is_dir():
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
            words = wording.plain(f"{event.path} cannot be sent as it is.\n\nr reads it again.")
            self.query_one("#summary", Static).update(words)
            return
        self._show(event.preview)

    def _show(self, preview: Preview) -> None:
        spec = preview.launch.spec
        self.title_text("2 New", spec.name, f"{spec.site} {spec.partition}")
        self.query_one("#summary", Static).update(summary(preview))
        self.query_one(ScriptView).show(preview.command, preview.launch.script)
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
            self._read(Path(path).expanduser())

    def action_submit(self) -> None:
        """Ask, then send."""
        preview = self._preview
        if preview is None:
            error = InputError("No job file is read yet.", "Choose one first.")
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


def terms(preview: Preview) -> list[tuple[str, str]]:
    """Return what a person agrees to when they send it."""
    launch = preview.launch
    warnings = sum(finding.severity == "warning" for finding in preview.findings)
    lines = [
        ("asks for", wording.size_of(launch.layout)),
        ("time", f"at most {launch.spec.time}"),
        ("billed", wording.price(launch.price)),
    ]
    return [*lines, ("warnings", str(warnings))] if warnings else lines


def summary(preview: Preview) -> Group:
    """Return what the job comes to, and what the adviser says of it."""
    launch, site = preview.launch, preview.site
    lines = [
        *terms(preview)[:3],
        ("site", f"{site.title}, {launch.spec.partition}"),
        ("launcher", f"{launch.spec.launcher}, {launch.spec.strategy}"),
        ("project", str(preview.project)),
        ("command", preview.command),
    ]
    if launch.global_batch:
        lines.insert(2, ("batch", f"{launch.global_batch} samples a step over all ranks"))
    return Group(facts(lines), Text(), *findings_text(preview))


def findings_text(preview: Preview) -> list[Text]:
    """Return the adviser's findings, errors first, each with what to do."""
    if not preview.findings:
        return [Text("Nothing to say against it.", style="green")]
    return [
        Text.assemble(
            (finding.severity, SEVERITY[finding.severity]),
            wording.plain(f"  {finding.message} "),
            wording.plain(finding.do),
        )
        for finding in preview.findings
    ]
