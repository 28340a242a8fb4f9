"""Drafts of job files: opened and checked."""

from __future__ import annotations

from pathlib import Path

from textual import on, work

from lumitui.app.tui import messages
from lumitui.app.tui.workers.core import CoreApp


class DraftWorkers(CoreApp):
    """An app that opens and checks drafts."""

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
        checked = price = None
        try:
            checked = self.runs.drafts.check(wanted.draft)
            price = self.runs.price_outlook(checked.previews[0]) if checked.previews else None
        finally:
            answer = messages.DraftChecked(wanted.number, checked, price)
            wanted.reply_to.post_message(answer)

    @on(messages.InquiryWanted)
    def _inquiry_wanted(self, event: messages.InquiryWanted) -> None:
        self._inquire(event)

    @work(thread=True, group="inquiry", exit_on_error=False)
    def _inquire(self, wanted: messages.InquiryWanted) -> None:
        inquired = None
        try:
            inquired = self.runs.inquiries.of_preview(wanted.preview, fresh=True)
        finally:
            wanted.reply_to.post_message(messages.InquiryAnswered(inquired))
