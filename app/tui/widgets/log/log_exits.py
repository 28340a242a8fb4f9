"""What leaves a log: text that is copied, and the log itself in a pager."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, ClassVar

from textual.app import SuspendNotSupported
from textual.binding import Binding, BindingType
from textual.containers import Vertical

from lumitui.app.explain import words
from lumitui.app.tui.asking import ask
from lumitui.app.tui.widgets.log.log_view import LogView

if TYPE_CHECKING:
    from pathlib import Path

    from lumitui.app.runs import Runs


class LogExits(Vertical):
    """A container with a log, which can be copied and opened in a pager."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(
            "y",
            "copy",
            "Copy",
            show=False,
            id="log.copy",
            tooltip="Copy what is marked: a selection, the error, or the lines on the screen",
        ),
        Binding(
            "P",
            "pager",
            "Pager",
            show=False,
            id="log.pager",
            tooltip="Open what is kept of the log on this machine in $PAGER",
        ),
    ]

    def __init__(self, run_id: str, *, id: str) -> None:  # noqa: A002 - Textual's name
        """Hold the log of the run `run_id`."""
        super().__init__(id=id)
        self._run_id = run_id
        self._attempt: int | None = None
        self._older: int | None = None
        """The attempt that was chosen instead of the newest."""

    def action_copy(self) -> None:
        """Copy a selection, the marked error, or the lines on the screen."""
        view = self.query_one(LogView)
        selected, marked = self.screen.get_selected_text(), view.marked
        lines = view.on_screen()
        if marked is not None and marked in lines:
            fold = marked.fold
            lines = list(fold.first) if fold and fold.head is marked else [marked]  # type: ignore[arg-type]
        text = selected or "\n".join(line.text for line in lines)
        self.app.copy_to_clipboard(text)
        self.notify(f"Copied {words.count(len(text.splitlines()), 'line')}.", markup=False)

    def action_pager(self) -> None:
        """Open what is kept of the log in the user's pager."""
        attempt = self._older or self._attempt
        ask(self, lambda runs: _exported(runs, self._run_id, attempt), self._show_in_pager)

    def _show_in_pager(self, path: Path) -> None:
        import shlex
        import subprocess

        command = shlex.split(os.environ.get("PAGER") or "less -R")
        try:
            with self.app.suspend():
                subprocess.run([*command, str(path)], check=False)
        except (SuspendNotSupported, OSError) as error:
            why = str(error).rstrip(".") or "this terminal cannot be left"
            self.notify(f"The pager cannot be opened: {why}.", severity="warning", markup=False)
        finally:
            path.unlink(missing_ok=True)


def _exported(runs: Runs, run_id: str, attempt: int | None) -> Path:
    """Write what is kept of a log to a file that a pager can show; who opens it removes it."""
    import tempfile
    from pathlib import Path

    handle, name = tempfile.mkstemp(prefix="lumitui-", suffix=".log")  # 0600
    os.close(handle)
    try:
        runs.pages.export(run_id, attempt, Path(name))
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    return Path(name)
