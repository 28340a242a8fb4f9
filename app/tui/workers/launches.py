"""Previews, plans, sends and cancels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual import on, work

from lumitui.app.tui import messages
from lumitui.app.tui.workers.core import CoreApp
from lumitui.remote.site.errors import LumiError

if TYPE_CHECKING:
    from lumitui.app.launch.send.preview import Preview
    from lumitui.app.scale.resubmission import Resubmission
    from lumitui.app.tui.dialogs.sending import SendingDialog


class LaunchWorkers(CoreApp):
    """An app that makes launches ready, sends and cancels them."""

    @on(messages.PlanWanted)
    def _plan_wanted(self, event: messages.PlanWanted) -> None:
        self._plan(event)

    @work(thread=True, group="plan", exit_on_error=False)
    def _plan(self, wanted: messages.PlanWanted) -> None:
        outcome: Resubmission | LumiError
        try:
            outcome = self.runs.plan_resubmission(
                wanted.run_id,
                nodes=wanted.nodes,
                settings=wanted.settings,
                code=wanted.code,
                start=wanted.start,
            )
        except LumiError as error:
            outcome = error  # the dialog shows it below the field that is wrong
        wanted.reply_to.post_message(messages.Planned(wanted.number, wanted.nodes, outcome))

    @on(messages.CodeNewsWanted)
    def _code_news_wanted(self, event: messages.CodeNewsWanted) -> None:
        self._compare_code(event)

    @work(thread=True, group="plan", exit_on_error=False)
    def _compare_code(self, wanted: messages.CodeNewsWanted) -> None:
        from lumitui.app.scale.resubmission import CodeNews

        news = CodeNews()
        try:
            news = self.runs.code_news(wanted.run_id)
        finally:
            wanted.reply_to.post_message(messages.CodeNewsFound(news))

    @work(thread=True, group="send", exit_on_error=False)
    def send_launch(
        self, preview: Preview, resubmission: Resubmission | None, dialog: SendingDialog
    ) -> None:
        """Send a launch; report its steps to `dialog`."""

        def report(step: str, words: str) -> None:
            dialog.post_message(messages.StepReported(step, words))

        run = None
        try:
            run = self.runs.send(preview, report=report, resubmission=resubmission)
        finally:
            self.post_message(messages.SendEnded(dialog, run))

    @work(thread=True, group="cancel", exit_on_error=False)
    def cancel_run(self, run_id: str) -> None:
        """Cancel a run's job."""
        run, error, warnings = None, None, list[str]()
        self.own_cancels.add(run_id)
        try:
            run = self.runs.cancel(run_id, warn=warnings.append)
        except LumiError as failed:
            error = failed  # the app says when to press the key again
        finally:
            if run is None:
                self.own_cancels.discard(run_id)
            self.post_message(messages.RunCancelled(run_id, run, error, tuple(warnings)))
