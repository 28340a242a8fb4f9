"""Drafts of job files: opened, checked, and the runs of a grid sent."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from textual import on, work

from lumitui.app.tui import messages
from lumitui.app.tui.workers.core import CoreApp

if TYPE_CHECKING:
    from lumitui.app.history.run import Run
    from lumitui.app.tui.dialogs.sending import SendingDialog


class DraftWorkers(CoreApp):
    """An app that opens and checks drafts, and sends grids."""

    @on(messages.DraftWanted)
    def _draft_wanted(self, event: messages.DraftWanted) -> None:
        self._open_draft(event)

    @work(thread=True, group="draft", exit_on_error=False)
    def _open_draft(self, wanted: messages.DraftWanted) -> None:
        draft = None
        try:
            known = self.runs.drafts
            if wanted.kind == "file":
                draft = known.open(Path(wanted.value))
            elif wanted.kind == "run":
                draft = known.run(wanted.value)
            else:
                draft = known.example(wanted.value, Path.cwd())
        finally:
            wanted.reply_to.post_message(messages.DraftOpened(wanted.number, draft))

    @on(messages.CheckWanted)
    def _check_wanted(self, event: messages.CheckWanted) -> None:
        self._check_draft(event)

    @work(thread=True, group="check", exit_on_error=False)
    def _check_draft(self, wanted: messages.CheckWanted) -> None:
        checked = None
        try:
            checked = self.runs.drafts.check(wanted.draft)
        finally:
            wanted.reply_to.post_message(messages.DraftChecked(wanted.number, checked))

    @work(thread=True, group="send", exit_on_error=False)
    def send_grid(self, wanted: messages.SeriesWanted, dialog: SendingDialog) -> None:
        """Send the runs of a grid; report the steps of each to `dialog`."""
        done: list[Run] = []
        count = len(wanted.previews)

        def report(step: str, words: str) -> None:
            words = f"run {len(done) + 1} of {count}: {words}" if words else words
            dialog.post_message(messages.StepReported(step, words))

        ended = False
        try:
            self.runs.drafts.send(wanted.previews, report=report, sent=done.append)
            ended = True
        finally:
            self.post_message(messages.SendEnded(dialog, done[-1] if ended else None))
