"""Leaving: what is under way is finished first, and edits that would be lost are asked about."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lumitui.app.tui.workers import WorkerApp
from lumitui.remote.site.errors import LumiError

if TYPE_CHECKING:
    from lumitui.app.history.run import Run
    from lumitui.app.job.settings import Settings
    from lumitui.app.launch.send.drafts.draft import Draft
    from lumitui.app.runs import Runs
    from lumitui.remote.connect import Connect


class LeavingApp(WorkerApp):
    """An app that ends only after what is under way."""

    def __init__(
        self, settings: Settings, connect: Connect | None, runs: Runs | None = None
    ) -> None:
        """Start with nothing under way."""
        super().__init__(settings, connect, runs)
        self.quits_when_done = False
        self.kept: Draft | None = None
        """The job file that a person left without saving it."""
        self._given_up: Draft | None = None
        """The edits that the person agreed to lose."""

    def to_first(self) -> None:
        """Close every screen but the first."""
        while len(self.screen_stack) > 1:
            self.pop_screen()

    def _run(self, run_id: str) -> Run | None:
        """Return a run; None, after its error is shown, if history cannot be read."""
        try:
            return self.runs.history.get(run_id)
        except LumiError as error:
            self.show_error(error)
            return None

    def _ended(self, words: str, *, well: bool) -> None:
        """Note the end of what was under way; quit if that was waiting for it.

        Stay if there is an error to read.
        """
        self.under_way.remove(words)
        self.quits_when_done = self.quits_when_done and well
        if not self.quits_when_done or self.under_way:
            return
        if self._unsaved() in (None, self._given_up):
            self.exit(0)
        else:
            self._ask_to_leave()

    def _unsaved(self) -> Draft | None:
        """Return the job file that would be lost now."""
        open_now = (getattr(screen, "unsaved", None) for screen in self.screen_stack)
        return next((draft for draft in open_now if draft is not None), self.kept)

    def _left_behind(self) -> list[tuple[str, str]]:
        """Return what is under way and what would be lost, for the question; empty: nothing."""
        lines = [("under way", words) for words in self.under_way]
        if (draft := self._unsaved()) is not None:
            lines += [("not saved", draft.name), ("to save it", "n, then 2, then w")]
        return lines

    async def action_quit(self) -> None:
        """Quit; what is under way and what is not saved is asked about, both at once."""
        if self.under_way or self._unsaved() is not None:
            self._ask_to_leave()
        else:
            self.exit(0)

    def _ask_to_leave(self) -> None:
        from lumitui.app.tui.dialogs.confirm_dialog import Confirm

        if self.screen.id == "leaving":
            return

        def answered(yes: bool | None) -> None:
            self._given_up = self._unsaved() if yes else None
            self.quits_when_done = bool(yes and self.under_way)
            if self.quits_when_done:
                self.notify(f"Quits after {', '.join(self.under_way)}.", markup=False)
            elif yes:
                self.exit(0)
            elif not self._left_behind():
                self.notify(f"Over: {waited}. Press q to quit.", markup=False)

        waited = ", ".join(self.under_way)
        lost = " and lose the edits?" if self._unsaved() is not None else "?"
        title = f"Quit when that is done{lost}" if self.under_way else f"Quit{lost}"
        question = Confirm(
            title, self._left_behind(), "Quit then" if self.under_way else "Quit",
            now=lambda: self._left_behind() or None, id="leaving",
        )  # fmt: skip
        self.push_screen(question, answered)
