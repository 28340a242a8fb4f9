"""What changes something on a site: sends, resubmissions and cancels, and what is asked before.

Quitting waits for the mutations that are under way.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from textual import on

from lumitui.app.explain import words
from lumitui.app.tui import messages
from lumitui.app.tui.screens.runs import RunsScreen
from lumitui.app.tui.widgets import styled
from lumitui.app.tui.workers import WorkerApp
from lumitui.remote.errors import InputError, LumiError

if TYPE_CHECKING:
    from lumitui.app.history.run import Run
    from lumitui.app.runs import Runs
    from lumitui.app.scale.resubmission import Resubmission
    from lumitui.app.send.drafts.draft import Draft
    from lumitui.app.send.preview import Preview
    from lumitui.app.settings import Settings
    from lumitui.app.tui.dialogs.sending import SendingDialog
    from lumitui.remote.connect import Connect

LONGEST_NAME = 20
"""Characters of a job's name in the title bar while it is sent."""
MOST_LISTED = 10
"""Runs that the question before several cancels names."""


class MutationApp(WorkerApp):
    """An app that asks before it sends or cancels, and shows what is under way."""

    def __init__(self, settings: Settings, connect: Connect, runs: Runs | None = None) -> None:
        """Start with nothing under way."""
        super().__init__(settings, connect, runs)
        self._sends: dict[SendingDialog, tuple[Path, str]] = {}
        """The sends under way: the project and the job's name of each."""
        self._quit_when_done = False
        self.kept: Draft | None = None
        """The job file that a person left without saving it."""

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

    # -- sends

    @on(messages.SendWanted)
    def _send_wanted(self, event: messages.SendWanted) -> None:
        self._send(event.preview, event.resubmission)

    @on(messages.SeriesWanted)
    def _series_wanted(self, event: messages.SeriesWanted) -> None:
        dialog = self._open_send(event.previews[0], f"{len(event.previews)} runs")
        self.send_grid(event, dialog)

    def _send(self, preview: Preview, resubmission: Resubmission | None) -> None:
        """Send; if the same job is being sent already, ask first."""
        from lumitui.app.tui.dialogs.confirm import Confirm

        def answered(yes: bool | None) -> None:
            if yes:
                self._begin_send(preview, resubmission)

        spec = preview.launch.spec
        if (preview.project, spec.name) in self._sends.values():
            lines = [("under way", f"{spec.name} is being sent already")]
            lines.append(("this sends", "a second job, which is billed too"))
            title = f"Send {styled.shorten(spec.name, LONGEST_NAME)} twice?"
            self.push_screen(Confirm(title, lines, "Send a second job"), answered)
        else:
            answered(yes=True)

    def _begin_send(self, preview: Preview, resubmission: Resubmission | None) -> None:
        self.send_launch(preview, resubmission, self._open_send(preview, preview.name))

    def _open_send(self, preview: Preview, name: str) -> SendingDialog:
        """Show that a send begins."""
        from lumitui.app.tui.dialogs.sending import SendingDialog

        dialog = SendingDialog(name)
        self.mutations += 1
        self._sends[dialog] = (preview.project, name)
        self._show_sends()
        self.push_screen(dialog)
        return dialog

    def _show_sends(self) -> None:
        """Show in every title bar what is being sent."""
        names = [styled.shorten(name, LONGEST_NAME) for _, name in self._sends.values()]
        what = names[0] if len(names) == 1 else f"{len(names)} jobs"
        self.sub_title = styled.plain(f"sending {what}").plain if names else ""

    @on(messages.SendEnded)
    def _send_ended(self, event: messages.SendEnded) -> None:
        from lumitui.app.tui.dialogs.sending import SendingDialog
        from lumitui.app.tui.screens.run import RunScreen

        assert isinstance(event.dialog, SendingDialog)
        seen = event.dialog.finish()
        del self._sends[event.dialog]
        self._show_sends()
        self.history_changed()
        if event.run is not None:
            self.notify(f"{event.run.id} is job {event.run.job_id}.", markup=False)
            if seen and not self._quit_when_done:
                self.to_first()
                # `1` and `+` are meant for this run, not for the one that was chosen before.
                first = self.screen_stack[0]
                assert isinstance(first, RunsScreen)
                first.choose(event.run.id)
                self.push_screen(RunScreen(self.runs, event.run.id))
        self._mutation_ended(well=event.run is not None)

    # -- cancels

    @on(messages.CancelWanted)
    def _cancel_wanted(self, event: messages.CancelWanted) -> None:
        from lumitui.app.tui.dialogs.confirm import Confirm

        def answered(yes: bool | None) -> None:
            if yes:
                self.mutations += 1
                self.cancel_run(event.run_id)

        run = self._run(event.run_id)
        if run is None:
            return
        if run.state.is_final:
            message = f"{run.id} has ended: {run.state}."
            self.show_error(InputError(message, "There is nothing to cancel."))
            return
        lines = [("state", str(run.state)), ("job", run.job_id or "not known yet")]
        lines.append(("asks for", words.layout_size(run.layout)))
        self.push_screen(Confirm(f"Cancel {run.id}?", lines, "Cancel the job"), answered)

    @on(messages.RunCancelled)
    def _cancelled(self, event: messages.RunCancelled) -> None:
        if event.run is not None:
            self.notify(f"{event.run.id}: {event.run.state}.", markup=False)
        for warning in event.warnings:
            self.notify(warning, severity="warning", markup=False)
        self.history_changed()
        self._mutation_ended(well=event.run is not None)

    @on(messages.CancelManyWanted)
    def _cancel_many_wanted(self, event: messages.CancelManyWanted) -> None:
        from lumitui.app.tui.dialogs.confirm import Confirm

        found = [run for run_id in event.run_ids if (run := self._run(run_id))]
        runs = [run for run in found if not run.state.is_final]
        ids = tuple(run.id for run in runs)

        def answered(yes: bool | None) -> None:
            if yes:
                self.mutations += 1
                self.cancel_runs(ids)

        if not runs:
            message = f"{words.count(len(event.run_ids), 'marked run')}: all have ended."
            self.show_error(InputError(message, "There is nothing to cancel."))
            return
        most = max(1, min(MOST_LISTED, self.size.height - 10))
        lines = [
            (run.id, f"{run.state}, {words.count(run.layout.nodes, 'node')}") for run in runs[:most]
        ]
        if len(runs) > most:
            lines.append(("and", f"{len(runs) - most} more"))
        if ended := len(found) - len(runs):
            lines.append(("not these", f"{words.count(ended, 'marked run')} ended already"))
        jobs = words.count(len(runs), "job")
        self.push_screen(Confirm(f"Cancel {jobs}?", lines, f"Cancel {jobs}"), answered)

    @on(messages.ManyCancelled)
    def _many_cancelled(self, event: messages.ManyCancelled) -> None:
        if event.run_ids:
            self.notify(f"Cancelled {words.count(len(event.run_ids), 'job')}.", markup=False)
        for warning in event.warnings:
            self.notify(warning, severity="warning", markup=False)
        for run_id, error in event.failed:
            said = str(error) if run_id in str(error) else f"{run_id}: {error}"
            self.notify(said, severity="error", markup=False, timeout=20)
        first = self.screen_stack[0]
        if isinstance(first, RunsScreen) and not event.failed:
            first.unmark()
        self.history_changed()
        self._mutation_ended(well=not event.failed)

    @on(messages.RunFetched)
    def _run_fetched(self, event: messages.RunFetched) -> None:
        self.notify(event.words, markup=False)

    # -- leaving

    def _mutation_ended(self, *, well: bool) -> None:
        """Quit if that was waiting for this mutation; stay if there is an error to read."""
        self.mutations -= 1
        self._quit_when_done = self._quit_when_done and well
        if self._quit_when_done and not self.mutations:
            self.exit(0)

    def _unsaved(self) -> Draft | None:
        """Return the job file that would be lost now."""
        open_now = (getattr(screen, "unsaved", None) for screen in self.screen_stack)
        return next((draft for draft in open_now if draft is not None), self.kept)

    def _leave(self) -> None:
        """End; ask first when a job file was edited and not saved."""
        from lumitui.app.tui.dialogs.confirm import Confirm

        def answered(yes: bool | None) -> None:
            if yes:
                self.exit(0)

        if (draft := self._unsaved()) is None:
            self.exit(0)
            return
        lines = [("not saved", draft.name), ("to save it", "n, then 2, then w")]
        self.push_screen(Confirm("Quit and lose the edits?", lines, "Quit"), answered)

    async def action_quit(self) -> None:
        """Quit; while a send or a cancel is under way, ask first and finish it."""
        from lumitui.app.tui.dialogs.confirm import Confirm

        if not self.mutations:
            self._leave()
            return

        def answered(yes: bool | None) -> None:
            self._quit_when_done = bool(yes) and self.mutations > 0
            if yes and not self.mutations:
                self._leave()

        lines = [("under way", f"{self.mutations} (sending or cancelling)")]
        self.push_screen(Confirm("Quit when that is done?", lines, "Quit then"), answered)
