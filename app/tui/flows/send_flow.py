"""Sends: asked first, shown while under way, and the new run shown when its job is there."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from textual import on

from lumitui.app.tui import messages
from lumitui.app.tui.flows.cancels import CancelApp
from lumitui.app.tui.screens.runs_screen import RunsScreen
from lumitui.app.tui.widgets import styled

if TYPE_CHECKING:
    from lumitui.app.job.settings import Settings
    from lumitui.app.launch.send.preview import Preview
    from lumitui.app.runs import Runs
    from lumitui.app.scale.resubmission import Resubmission
    from lumitui.app.tui.dialogs.sending import SendingDialog
    from lumitui.remote.connect import Connect

LONGEST_NAME = 20
"""Characters of a job's name in the title bar while it is sent."""


class MutationApp(CancelApp):
    """An app that asks before it sends or cancels, and shows what is under way."""

    def __init__(
        self, settings: Settings, connect: Connect | None, runs: Runs | None = None
    ) -> None:
        """Start with nothing under way."""
        super().__init__(settings, connect, runs)
        self._sends: dict[SendingDialog, tuple[Path, str]] = {}
        """The sends under way: the project and the job's name of each."""

    @on(messages.SendWanted)
    def _send_wanted(self, event: messages.SendWanted) -> None:
        self._send(event.preview, event.resubmission)

    def _send(self, preview: Preview, resubmission: Resubmission | None) -> None:
        """Send; if the same job is being sent already, ask first."""
        from lumitui.app.tui.dialogs.confirm_dialog import Confirm

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
        return self._show_send(preview, name, name)

    def _show_send(self, preview: Preview, title: str, name: str) -> SendingDialog:
        """Show that the job `name` is being sent, under a title."""
        from lumitui.app.tui.dialogs.sending import SendingDialog

        dialog = SendingDialog(title, self._silence_of(preview.launch.spec.site))
        self._sends[dialog] = (preview.project, name)
        self.under_way.append(f"sending {name}")
        self._show_sends()
        self.push_screen(dialog)
        return dialog

    def _silence_of(self, site: str) -> Callable[[], float]:
        """Return what tells for how long a site has not been heard, in seconds.

        Without a connection: since there was none.
        """
        lost = time.monotonic()

        def silence() -> float:
            nonlocal lost
            heard = self.runs.silence(site)
            if heard < math.inf:
                lost = time.monotonic() - heard
            return time.monotonic() - lost

        return silence

    def _send_over(self, event: messages.SendEnded | messages.SeriesEnded) -> tuple[bool, str]:
        """Close the dialog; return whether the person saw it, and what was under way."""
        from lumitui.app.tui.dialogs.sending import SendingDialog

        assert isinstance(event.dialog, SendingDialog)
        seen = event.dialog.finish()
        _, name = self._sends.pop(event.dialog)
        self._show_sends()
        self.history_changed()
        return seen, f"sending {name}"

    def _show_sends(self) -> None:
        """Show in every title bar what is being sent."""
        names = [styled.shorten(name, LONGEST_NAME) for _, name in self._sends.values()]
        what = names[0] if len(names) == 1 else f"{len(names)} jobs"
        self.sub_title = styled.plain(f"sending {what}").plain if names else ""

    @on(messages.SendEnded)
    def _send_ended(self, event: messages.SendEnded) -> None:
        from lumitui.app.tui.screens.run_screen import RunScreen

        seen, words = self._send_over(event)
        if event.run is not None:
            self.notify(f"{event.run.id} is job {event.run.job_id}.", markup=False)
            if seen and not self.quits_when_done:
                self.to_first()
                # `1` and `+` are meant for this run, not for the one that was chosen before.
                first = self.screen_stack[0]
                assert isinstance(first, RunsScreen)
                first.choose(event.run.id)
                self.push_screen(RunScreen(self.runs, event.run.id))
        self._ended(words, well=event.run is not None)
