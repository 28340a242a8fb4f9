"""What leaves a log: text that is copied, and the log itself in a pager."""

import os
from typing import ClassVar

from textual import on
from textual.app import SuspendNotSupported
from textual.binding import Binding, BindingType
from textual.containers import Vertical

from lumitui.app.explain import words
from lumitui.app.tui import messages
from lumitui.app.tui.widgets.log.log_view import LogView


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
        """Open what is kept of the log in the person's pager."""
        attempt = self._older or self._attempt
        self.app.post_message(messages.PagerWanted(self, self._run_id, attempt))

    @on(messages.PagerReady)
    def _pager_ready(self, event: messages.PagerReady) -> None:
        import shlex
        import subprocess

        command = shlex.split(os.environ.get("PAGER") or "less -R")
        try:
            with self.app.suspend():
                subprocess.run([*command, str(event.path)], check=False)
        except (SuspendNotSupported, OSError) as error:
            why = str(error).rstrip(".") or "this terminal cannot be left"
            self.notify(f"The pager cannot be opened: {why}.", severity="warning", markup=False)
        finally:
            event.path.unlink(missing_ok=True)
