"""The pane with the files of a run's folder: listed on the site, previewed, fetched."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.timer import Timer
from textual.widgets import DataTable, Static

from lumitui.app.explain import words
from lumitui.app.runs import Run
from lumitui.app.tui.asking import ask, tui
from lumitui.app.tui.widgets.scroll import Scroll
from lumitui.app.tui.widgets.styled import plain

if TYPE_CHECKING:
    from lumitui.app.runs import FileList, FilePreview, Runs

MOST_ROWS = 2000
"""Files that are listed; the line above says how many more there are."""
KEYS = "enter fetch, v view, r list again"


class FilesPane(Vertical):
    """The files, a line on what is under way, and the beginning of one of them."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("v", "view", "View", id="files.view", tooltip="Show the beginning of the file"),
        Binding("r", "list_again", "List again", show=False, id="files.list",
                tooltip="List the files on the site again"),
        Binding("j", "move(1)", "Down", show=False, id="files.down", tooltip="Next file"),
        Binding("k", "move(-1)", "Up", show=False, id="files.up", tooltip="Previous file"),
    ]  # fmt: skip

    def __init__(self) -> None:
        """Show no files yet."""
        super().__init__(id="folder")
        self._run: Run | None = None
        self._found: FileList | None = None
        self._fetching: tuple[str, int, Path] | None = None
        """Name and bytes of the file that is fetched, and into which folder."""
        self._timer: Timer | None = None

    def compose(self) -> ComposeResult:
        """Yield the line, the files and the preview."""
        yield Static(id="files-line", markup=False)
        yield DataTable[Text](id="files-table", cursor_type="row", cell_padding=1)
        with Scroll(id="files-view"):
            yield Static(id="files-text", markup=False)

    def draw(self, run: Run) -> None:
        """List the files of `run` the first time; afterwards on demand only."""
        if self._run is None:
            self._run = run
            self.query_one("#files-view").display = False
            self.action_list_again()

    def action_list_again(self) -> None:
        """List the files on the site."""
        if self._run is not None:
            self._say("Asking the site for the list of files …")
            run_id = self._run.id
            failed = "The files could not be listed. Press r to try again."
            ask(
                self,
                lambda runs: runs.files.list(run_id),
                self._files_found,
                failed=lambda _: self._say(failed),
            )

    def _files_found(self, found: FileList) -> None:
        self._found = found
        table = self._table
        chosen = self._chosen
        table.clear(columns=True)
        table.add_column(Text("size", justify="right"))
        table.add_column("file")
        for item in found.files[:MOST_ROWS]:
            size = Text(words.size(item.size), justify="right")
            table.add_row(size, plain(item.name), key=item.name)
        if chosen is not None and any(key.value == chosen for key in table.rows):
            table.move_cursor(row=table.get_row_index(chosen), animate=False)
        self._draw_line()

    def _draw_line(self) -> None:
        found = self._found
        if found is None:
            return
        total = words.size(sum(item.size for item in found.files))
        line = f"{words.count(len(found.files), 'file')}, {total}; {KEYS}"
        if len(found.files) > MOST_ROWS:
            line = f"the first {MOST_ROWS:,} of {line}; `lumitui fetch` brings any"
        if found.left:
            line += f"; {found.left[0]}"
        self._say(line)

    # -- view

    def action_view(self) -> None:
        """Show the beginning of the chosen file, or hide it again."""
        view = self.query_one("#files-view")
        if view.display:
            view.display = False
            self._table.focus()
        elif self._run is not None and self._chosen is not None:
            run_id, name = self._run.id, self._chosen
            ask(self, lambda runs: runs.files.preview(run_id, name), self._file_read)

    def _file_read(self, found: FilePreview) -> None:
        text = plain(found.text or ("no text" if found.binary else "empty"))
        if found.cut and not found.binary:
            text.append("\n… fetch it to see the rest", "dim")
        view = self.query_one("#files-view")
        self.query_one("#files-text", Static).update(text)
        view.display = True
        view.border_title = plain(found.name).plain.replace("[", "(")
        view.scroll_home(animate=False)
        view.focus()

    # -- fetch

    @on(DataTable.RowSelected)
    def _row_selected(self, event: DataTable.RowSelected) -> None:
        event.stop()
        run, name = self._run, self._chosen
        if run is None or name is None or self._found is None:
            return
        if self._fetching is not None:
            self.notify("A file is being fetched already.", severity="warning")
            return
        from lumitui.app.tui.dialogs.line_dialog import LineDialog, folder_line

        size = next(item.size for item in self._found.files if item.name == name)

        def fetch(line: str | None) -> None:
            if line is not None:
                target = Path(os.path.expanduser(line))  # leaves `~nobody` as it is
                self._fetching = (name, size, target)
                self._timer = self.set_interval(0.5, self._draw_progress)
                self._draw_progress()
                ended = partial(self.call_later, self._fetch_ended)
                # The app asks: that it failed is said, too, when the pane has gone.
                ask(
                    tui(self),
                    lambda runs: _fetched(runs, run.id, name, target),
                    lambda path: ended(f"Fetched {path}."),
                    failed=lambda _: ended(f"{name} was not fetched."),
                )

        asked = LineDialog(
            "Fetch into which folder?",
            f"{name}, {words.size(size)}",
            str(Path.cwd() / run.id),
            check=folder_line,
        )
        self.app.push_screen(asked, fetch)

    def _draw_progress(self) -> None:
        from lumitui.app.runs import PartialFiles

        if self._fetching is not None:
            name, size, target = self._fetching
            here = PartialFiles(target).size(name)
            self._say(f"Fetching {name}: {words.size(here)} of {words.size(size)} …")

    def _fetch_ended(self, words: str) -> None:
        self._fetching = None
        if self._timer is not None:
            self._timer.stop()
        self._say(words)

    # -- inside

    def action_move(self, step: int) -> None:
        """Move the cursor, or scroll what is viewed."""
        view = self.query_one("#files-view")
        if view.has_focus:
            view.scroll_relative(y=step, animate=False)
        else:
            self._table.move_cursor(row=self._table.cursor_row + step, animate=False)

    @property
    def _table(self) -> DataTable[Text]:
        return self.query_one("#files-table", DataTable)

    @property
    def _chosen(self) -> str | None:
        table = self._table
        if not table.row_count:
            return None
        return table.coordinate_to_cell_key(table.cursor_coordinate).row_key.value

    def _say(self, line: str) -> None:
        self.query_one("#files-line", Static).update(plain(line, "dim"))


def _fetched(runs: Runs, run_id: str, name: str, target: Path) -> Path:
    """Fetch a file of a run's folder into the folder `target`; return where it is."""
    from lumitui.app.runs import check_fetch, fetch_pattern

    check_fetch(runs.fetch(run_id, target, [fetch_pattern(name)]), named=True)
    return target / name
