"""A sent job script, with its submit command and accompanying files."""

import re
from collections.abc import Iterator, Mapping
from typing import ClassVar

from rich.cells import chop_cells
from rich.text import Text
from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.highlight import highlight
from textual.widgets import Static

from lumitui.app.explain.words import count as plural
from lumitui.app.explain.words import file_heading
from lumitui.app.runs import JOB_SCRIPT, Run, count_changes, log_line, script_changes
from lumitui.app.tui.widgets.scroll import Scroll

_OPTIONS = re.compile("^#SBATCH .*$", re.MULTILINE)
_WRAPS = 70  # minimum columns to wrap lines while another view has the focus
_CONTINUES = "╰ "  # the mark before the continuation of a long line
_ENDS = (" ", "/=:,", "-_.")  # where such a line is broken, the best first


class HangingText(Static):
    """Text with long lines continued below, indented, after a mark; or cut."""

    _text = Content("")
    _width = 0
    _cuts = False

    def show(self, text: Content) -> None:
        """Show another text."""
        self._text, self._width = text, 0
        self.on_resize()

    def cut(self, *, cuts: bool) -> None:
        """Cut long lines, or continue them below."""
        if cuts != self._cuts:
            self._cuts = cuts
            self.show(self._text)

    def on_resize(self) -> None:
        if (width := self.size.width) and width != self._width:
            self._width = width
            lines = self._text.split("\n", allow_blank=True)
            hang = _cut if self._cuts else hung
            self.update(Content("\n").join(part for line in lines for part in hang(line, width)))


def _cut(line: Content, width: int) -> Iterator[Content]:
    """Yield a line without what follows `width` cells; a comment goes as a whole."""
    comment = line.plain.rfind(" # ")
    if line.cell_length > width and comment > 0:
        line = line[:comment]
    yield line.truncate(width, ellipsis=True)


def hung(line: Content, width: int) -> Iterator[Content]:
    """Yield a line in parts of at most `width` cells, broken before a comment or at `_ENDS`."""
    indent = len(line.plain) - len(line.plain.lstrip())
    indent = indent if indent < width // 2 else 0
    mark = Content.styled(f"{' ' * indent}{_CONTINUES}", "$text 40%")
    begins = indent
    while line.cell_length > width > len(mark):
        part = chop_cells(line.plain, width)[0]
        comment = line.plain.rfind(" # ", begins + 1, len(part) + 2)
        ends = (max(part.rfind(one, begins + 1) for one in signs) for signs in _ENDS)
        at = next((end + 1 for end in (comment, *ends) if end > 0), len(part))
        yield line[:at]
        line, begins = mark + line[at:], len(mark)
    yield line


class ScriptView(Scroll):
    """The command, then the script."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("a", "toggle_all", "All", id="script.all",
                tooltip="Also show the files that job.sh calls, and the probe"),
    ]  # fmt: skip

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id)
        self._files: Mapping[str, str] = {}
        self._base: str | None = None
        self._since = ""
        self._all = False

    def compose(self) -> ComposeResult:
        """Yield the command, then the script."""
        yield Static(id="command", markup=False)
        yield HangingText(id="text", markup=False)

    def show(
        self, command: str, files: Mapping[str, str], base: str | None = None, since: str = ""
    ) -> None:
        """Show job.sh from the scripts `files`, and the command that submits it.

        With `base`, another job.sh, mark the changes against it; `since` describes it.
        """
        self._files, self._base, self._since = files, base, since
        words = (one.rpartition("/")[2] if one[:1] == "/" else one for one in command.split(" "))
        self.query_one("#command", Static).update(Text(log_line(f"$ {' '.join(words)}"), "dim"))
        self._draw_files()

    def draw(self, run: Run) -> None:
        """Show the sent script of `run` and the command that submitted it, which never change."""
        if not self._files:
            self.show(run.command, run.files)

    @on(events.Focus)
    @on(events.Blur)
    @on(events.Resize)
    def _fit(self) -> None:
        """Cut long lines in a narrow column beside another view; wrap them for reading."""
        cuts = not self.has_focus and self.size.width < _WRAPS
        self.query_one("#text", HangingText).cut(cuts=cuts)

    def action_toggle_all(self) -> None:
        self._all = not self._all
        self._draw_files()

    def _draw_files(self) -> None:
        text = self._files.get(JOB_SCRIPT, "")
        if self._all:
            parts = (f"{file_heading(name)}\n{text}" for name, text in self._files.items())
            text = "\n".join(parts)
        shown = "\n".join(log_line(line) for line in text.split("\n"))
        # To bash, `#SBATCH` lines are comments; to Slurm, they define the job.
        content = highlight(shown, language="bash").highlight_regex(_OPTIONS, style="$text-primary")
        if self._base is not None and not self._all:
            content = _marked(content, self._base, text, self._since)
        self.query_one("#text", HangingText).show(content)


def _marked(content: Content, base: str, text: str, since: str) -> Content:
    """Return the lines of `content`, which shows `text`, with the changes against `base` marked."""
    found = script_changes(base, text)
    if not count_changes(found):
        return content
    shown = iter(content.split("\n", allow_blank=True))
    count = plural(count_changes(found), "line")
    lines = [Content.styled(f"{count} changed{since}\n", "bold")]
    for line in found:
        if line.kind == "gone":
            lines.append(Content.styled(f"- {log_line(line.text)}", "dim"))
        else:
            mark = Content.styled("▌ ", "bold $warning") if line.kind == "new" else Content("  ")
            lines.append(mark + next(shown, Content("")))
    return Content("\n").join(lines)
