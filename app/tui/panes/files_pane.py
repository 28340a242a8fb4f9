"""The pane with the files in a run's folder: listed on the site, previewed, fetched."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.timer import Timer
from textual.widgets import Static, Tree
from textual.widgets.tree import TreeNode

from lumitui.app.explain import words
from lumitui.app.runs import Run
from lumitui.app.tui.asking import ask, tui
from lumitui.app.tui.widgets.script_view import HangingText
from lumitui.app.tui.widgets.scroll import Scroll
from lumitui.app.tui.widgets.styled import plain

if TYPE_CHECKING:
    from lumitui.app.runs import FileList, FilePreview, RemoteFile, Runs

    _Node = TreeNode["ListedFolder | RemoteFile | None"]

MOST_ROWS = 2000
"""Maximum rows below one folder; the last one counts the rest."""
_FEW = 10  # maximum files in a folder that starts open
_BAR = 20  # cells of a progress bar


@dataclass(frozen=True)
class ListedFolder:
    """A folder of the tree; creates its rows when opened, because it may have thousands."""

    path: str
    """Path of the group and the folder, with a slash at the end."""
    files: Sequence[RemoteFile]
    depth: int
    """Length of the folder's path in its files' names."""

    @property
    def label(self) -> Text:
        """The folder's name, with the number and size of its files."""
        total = words.size(sum(item.size for item in self.files))
        name = self.path.rstrip("/").rpartition("/")[2]
        return _label(f"{name}/" if self.depth else name,
                      f"{words.count(len(self.files), 'file')}, {total}")  # fmt: skip

    def below(self) -> dict[str, list[RemoteFile]]:
        """Return the files by the first part of their names; a folder's part ends with a slash."""
        parts: dict[str, list[RemoteFile]] = {}
        for item in self.files:
            first, slash, _ = item.name[self.depth :].partition("/")
            parts.setdefault(first + slash, []).append(item)
        return parts


class FileTree(Tree["ListedFolder | RemoteFile | None"]):
    """The tree, folded with the arrows like the list of runs."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "fold_in", show=False, id="files.fold-in",
                tooltip="Close the folder, or go to the one around it"),
        Binding("right", "fold_out", show=False, id="files.fold-out", tooltip="Open the folder"),
    ]  # fmt: skip

    def action_fold_in(self) -> None:
        """Close the folder under the cursor; from anything else, go to the folder around it."""
        node = self.cursor_node
        if node is not None and node.is_expanded:
            node.collapse()
        elif node is not None and node.parent is not self.root:
            self.action_cursor_parent()

    def action_fold_out(self) -> None:
        if self.cursor_node is not None and self.cursor_node.allow_expand:
            self.cursor_node.expand()


class FilesPane(Vertical):
    """The files as a tree, a status line, and the beginning of one of them."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("v", "view", "View", id="files.view", tooltip="Show the beginning of the file"),
        Binding("r", "list_again", "Refresh", id="files.list",
                tooltip="List the files on the site again"),
        Binding("j", "move(1)", "Down", show=False, id="files.down", tooltip="Next file"),
        Binding("k", "move(-1)", "Up", show=False, id="files.up", tooltip="Previous file"),
    ]  # fmt: skip

    def __init__(self) -> None:
        super().__init__(id="folder")
        self._run: Run | None = None
        self._found: FileList | None = None
        self._open: set[str] = set()  # the paths of open folders
        self._fetching: tuple[RemoteFile, Path] | None = None
        """The file being fetched, and its target folder."""
        self._began = (0.0, 0)  # when the fetch began, and the bytes already present then
        self._timer: Timer | None = None

    def compose(self) -> ComposeResult:
        """Yield the status line, the files and the preview."""
        yield Static(id="files-line", markup=False)
        tree = FileTree("files", id="files-tree")
        tree.show_root, tree.guide_depth = False, 3
        yield tree
        with Scroll(id="files-view"):
            yield HangingText(id="files-text", markup=False)

    def draw(self, run: Run) -> None:
        """List the files of `run` the first time, then only on demand."""
        if self._run is None:
            self._run = run
            self.query_one("#files-view").display = False
            self.action_list_again()

    def action_list_again(self) -> None:
        if self._run is not None:
            self._say("Fetching the list of files from the site …")
            run_id = self._run.id
            failed = "lumitui could not list the files. Press r to try again."
            ask(self, lambda runs: runs.files.list(run_id), self._files_found,
                failed=lambda _: self._say(failed))  # fmt: skip

    def _files_found(self, found: FileList) -> None:
        from lumitui.app.runs import FileGroup, group_of

        tree, first, chosen = self._tree, self._found is None, self._chosen
        self._found = found
        tree.clear()
        for group in FileGroup:
            files = [item for item in found.files if group_of(item.name) is group]
            if files:
                if first and group in (FileGroup.RESULTS, FileGroup.LOGS):
                    self._open.add(f"{group}/")
                self._add(tree.root, ListedFolder(f"{group}/", files, 0), few=first)
        tree.root.expand()
        nodes = list(_nodes(tree.root))
        at = next((node for node in nodes if chosen and node.data == chosen), None)
        at = at or next((node for node in nodes if not node.allow_expand), None)
        self.call_after_refresh(tree.move_cursor, at)
        self._draw_line()

    def _add(self, node: _Node, folder: ListedFolder, *, few: bool = False) -> None:
        """Add a folder below `node`; reopen it if it was open. Initially, open small folders."""
        if few and folder.depth and len(folder.files) <= _FEW:
            self._open.add(folder.path)
        below = node.add(folder.label, folder)
        if folder.path in self._open:
            self._fill(below, few=few)
            below.expand()

    def _fill(self, node: _Node, *, few: bool = False) -> None:
        """Make the rows below a folder."""
        folder = node.data
        if not isinstance(folder, ListedFolder) or node.children:
            return
        parts = folder.below()
        for name, files in list(parts.items())[:MOST_ROWS]:
            if name.endswith("/"):
                inner = ListedFolder(folder.path + name, files, folder.depth + len(name))
                self._add(node, inner, few=few)
            else:
                node.add_leaf(_label(name, words.size(files[0].size)), files[0])
        if (more := len(parts) - MOST_ROWS) > 0:
            node.add_leaf(Text(f"… {more:,} more; `lumitui fetch` fetches any of them", "dim"))

    @on(Tree.NodeExpanded)
    def _expanded(self, event: Tree.NodeExpanded[ListedFolder | RemoteFile | None]) -> None:
        if isinstance(event.node.data, ListedFolder):
            self._open.add(event.node.data.path)
            self._fill(event.node)

    @on(Tree.NodeCollapsed)
    def _collapsed(self, event: Tree.NodeCollapsed[ListedFolder | RemoteFile | None]) -> None:
        if isinstance(event.node.data, ListedFolder):
            self._open.discard(event.node.data.path)

    def _draw_line(self) -> None:
        found = self._found
        if found is None:
            return
        total = words.size(sum(item.size for item in found.files))
        line = f"{words.count(len(found.files), 'file')}, {total}; enter opens or fetches"
        if found.left:
            line += f"; {found.left[0]}"
        self._say(line)

    def action_view(self) -> None:
        """Show the beginning of the chosen file, or hide it again."""
        view = self.query_one("#files-view")
        if view.display:
            view.display = False
            self._tree.focus()
        elif self._run is not None and self._chosen is not None:
            run_id, name = self._run.id, self._chosen.name
            ask(self, lambda runs: runs.files.preview(run_id, name), self._file_read)

    def _file_read(self, found: FilePreview) -> None:
        text = plain(found.text or ("This file is not text." if found.binary else "empty"))
        if found.cut and not found.binary:
            text.append("\n… fetch it to see the rest", "dim")
        view = self.query_one("#files-view")
        self.query_one("#files-text", HangingText).show(Content.from_rich_text(text))
        view.display = True
        view.border_title = plain(found.name).plain.replace("[", "(")
        view.scroll_home(animate=False)
        view.focus()

    @on(Tree.NodeSelected)
    def _selected(self, event: Tree.NodeSelected[ListedFolder | RemoteFile | None]) -> None:
        event.stop()
        run, item = self._run, self._chosen
        if run is None or item is None:
            return
        if self._fetching is not None:
            self.notify("lumitui is already fetching a file.", severity="warning")
            return
        from lumitui.app.tui.dialogs.line_dialog import LineDialog, folder_line

        what, folder = f"{item.name}, {words.size(item.size)}", str(Path.cwd() / run.id)
        asked = LineDialog("Fetch into which folder?", what, folder, check=folder_line)
        self.app.push_screen(asked, lambda line: None if line is None else self._fetch(item, line))

    def _fetch(self, item: RemoteFile, line: str) -> None:
        from lumitui.app.runs import PartialFiles

        assert self._run is not None
        run_id, target = self._run.id, Path(os.path.expanduser(line))  # keeps `~nobody` unchanged
        self._fetching = (item, target)
        self._began = (time.monotonic(), PartialFiles(target).size(item.name))
        self._timer = self.set_interval(0.5, self._draw_progress)
        self._draw_progress()
        ended = partial(self.call_later, self._fetch_ended)
        # The app makes the call, so that a failure is shown even after the pane has closed.
        ask(tui(self), lambda runs: _fetched(runs, run_id, item.name, target),
            lambda path: ended(f"Fetched {path}."),
            failed=lambda _: ended(f"{item.name} was not fetched."))  # fmt: skip

    def _draw_progress(self) -> None:
        from lumitui.app.runs import PartialFiles

        if self._fetching is not None:
            item, target = self._fetching
            here, (began, before) = PartialFiles(target).size(item.name), self._began
            seconds = time.monotonic() - began
            self._say(fetch_line(item.name, here, item.size, (here - before) / max(seconds, 0.1)))

    def _fetch_ended(self, words: str) -> None:
        self._fetching = None
        if self._timer is not None:
            self._timer.stop()
        self._say(words)

    def action_move(self, step: int) -> None:
        """Move the cursor, or scroll the view."""
        view = self.query_one("#files-view")
        if view.has_focus:
            view.scroll_relative(y=step, animate=False)
        else:
            self._tree.move_cursor_to_line(max(0, self._tree.cursor_line + step))

    @property
    def _tree(self) -> FileTree:
        return self.query_one(FileTree)

    @property
    def _chosen(self) -> RemoteFile | None:
        """The selected file; None if a folder or no row is selected."""
        node = self._tree.cursor_node
        return None if node is None or isinstance(node.data, ListedFolder) else node.data

    def _say(self, line: str) -> None:
        self.query_one("#files-line", Static).update(plain(line, "dim"))


def fetch_line(name: str, here: int, size: int, rate: float) -> str:
    """Return the progress of a fetch: a bar, the bytes, the rate and the time left."""
    share = min(1.0, here / size) if size else 1.0
    full = int(share * _BAR)
    line = f"Fetching {name} {'▓' * full}{'░' * (_BAR - full)} {share:.0%} of {words.size(size)}"
    if rate > 0 and here < size:
        left = words.short_length((size - here) / rate)
        line += f", {words.size(int(rate))}/s, {left} left"
    return line


def _label(name: str, size: str) -> Text:
    return plain(name).append(f"  {size}", "dim")


def _nodes(node: _Node) -> Iterator[_Node]:
    """Yield the existing nodes below `node`, in display order."""
    for child in node.children:
        yield child
        yield from _nodes(child)


def _fetched(runs: Runs, run_id: str, name: str, target: Path) -> Path:
    """Fetch a file in a run's folder into the folder `target`; return its local path."""
    from lumitui.app.runs import check_fetch, fetch_pattern

    check_fetch(runs.fetch(run_id, target, [fetch_pattern(name)]), named=True)
    return target / name
