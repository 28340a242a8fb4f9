"""The workers of the TUI: everything that may take time, in threads that touch no widget.

Each is started from the app, so that one handler sees every error, and answers by messages.
A send, a cancel and a resubmission are never exclusive: Textual marks the first of two as
cancelled, but both run.
"""

import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future

from textual import events, on, work
from textual.app import App
from textual.filter import LineFilter
from textual.worker import get_current_worker

from lumitui.app.job.spec import read_job
from lumitui.app.runs import Preview, Refreshed, Resubmission, Runs
from lumitui.app.settings import Settings
from lumitui.app.tui import messages
from lumitui.app.tui.screens.dialogs import AskDialog, SendingDialog
from lumitui.app.tui.widgets.control_filter import NoSteering
from lumitui.app.watch.follow_log import LogEnded
from lumitui.app.watch.schedule import Schedule
from lumitui.remote.connect import Connect
from lumitui.remote.errors import InputError, LumiError
from lumitui.remote.ssh.prompts import Question

ANSWER_SECONDS = 240.0
"""A question is closed after so long; sshd's LoginGraceTime is 120 s where nobody set it."""
MOST_WAITING = 8
"""Messages with pieces of a log that its screen has not drawn yet."""
TICK = 1.0
"""Seconds between two checks whether a site is due."""


class WorkerApp(App[int]):
    """An app with the workers of the TUI; what is seen of it is LumiApp's."""

    def __init__(self, settings: Settings, connect: Connect) -> None:
        """Open the history; no site is asked before something is unfinished there."""
        super().__init__()
        self.runs: Runs = Runs(settings, ask=self.ask, connect=connect)
        self.schedule = Schedule(last_input=time.monotonic())
        self.mutations = 0
        """Sends and cancels under way; leaving waits for them."""
        self.leaving = threading.Event()
        self._no_steering = NoSteering()
        self.defect: Exception | None = None
        """What ended the app, when a defect did."""

    def _handle_exception(self, error: Exception) -> None:
        """Keep a defect for the report."""
        self.defect = self.defect or error
        super()._handle_exception(error)

    def _fatal_error(self) -> None:
        """End as Textual does, without its traceback: that shows local variables, and secrets."""
        self._close_messages_no_wait()

    def get_line_filters(self) -> Sequence[LineFilter]:
        """Textual's own, and one that lets nothing steer the terminal."""
        return [*super().get_line_filters(), self._no_steering]

    def on_unmount(self) -> None:
        """Let the threads end: they ask `leaving`, and a closed connection answers none."""
        self.leaving.set()
        if not self.mutations:
            self.runs.close()

    def ask(self, question: Question) -> str | None:
        """Put a question to the person from a worker's thread.

        None when they decline, leave the app, or are so late that the site no longer waits.
        """
        answered: Future[str | None] = Future()
        dialog, deadline = AskDialog(question), time.monotonic() + ANSWER_SECONDS
        self.call_from_thread(self.push_screen, dialog, answered.set_result)
        while not self.leaving.is_set() and time.monotonic() < deadline:
            try:
                return answered.result(timeout=0.2)
            except TimeoutError:
                continue
        if not self.leaving.is_set():
            self.call_from_thread(self._withdraw, dialog)
        return None

    def _withdraw(self, dialog: AskDialog) -> None:
        """Close a question that nobody has answered."""
        if dialog.is_current:
            dialog.dismiss(None)

    async def on_event(self, event: events.Event) -> None:
        """Note that somebody is there."""
        if isinstance(event, events.Key | events.MouseDown | events.AppFocus):
            self.schedule.last_input = time.monotonic()
        if isinstance(event, events.AppFocus | events.AppBlur):
            self.schedule.focused = isinstance(event, events.AppFocus)
        await super().on_event(event)

    @on(messages.RefreshWanted)
    def tick(self, event: messages.RefreshWanted | None = None) -> None:
        """Start a refresh of every site that is due; with an `event`, the person asked for it."""
        try:
            sites = {run.site for run in self.runs.history.unfinished()}
        except LumiError as error:
            self.post_message(messages.Failed(error, repeats=True))
            return
        self.schedule.drop_warnings(sites)
        if event is not None:
            self.schedule.hurry(sites)
        for site in self.schedule.due(sites, time.monotonic()):
            self._refresh_site(site, self.schedule.began(site))

    @work(thread=True, group="refresh", exit_on_error=False)
    def _refresh_site(self, site: str, attended: bool) -> None:
        refreshed: Refreshed | None = None
        pause = 60.0
        try:
            refreshed = self.runs.refresh(site, attended=attended)
            pause = self.runs.sites.load(site).poll_seconds
        except InputError:
            pass  # no such profile any more: the refresh's own warning says so
        finally:
            self.post_message(messages.SiteRefreshed(site, refreshed, pause))

    @on(messages.SiteRefreshed)
    def _site_refreshed(self, event: messages.SiteRefreshed) -> None:
        told = event.refreshed or Refreshed((), (f"{event.site}: could not be asked.",), 0)
        now = time.monotonic()
        self.schedule.ended(
            event.site, now, pause=event.pause, requests=told.requests, warnings=told.warnings
        )
        self.history_changed()

    def history_changed(self) -> None:
        """Tell every screen to read history again."""
        for screen in self.screen_stack:
            screen.post_message(messages.HistoryChanged())

    @on(messages.PreviewWanted)
    def _preview_wanted(self, event: messages.PreviewWanted) -> None:
        self._preview(event)

    @work(thread=True, group="preview", exit_on_error=False)
    def _preview(self, wanted: messages.PreviewWanted) -> None:
        preview: Preview | None = None
        try:
            path = wanted.path.resolve()
            preview = self.runs.preview(read_job(path), path.parent, job_file=path)
        finally:
            wanted.reply_to.post_message(messages.PreviewMade(wanted.number, wanted.path, preview))

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
            outcome = error  # the dialog shows it beside the field that is wrong
        wanted.reply_to.post_message(messages.Planned(wanted.number, outcome))

    @work(thread=True, group="send", exit_on_error=False)
    def send_launch(
        self, preview: Preview, resubmission: Resubmission | None, dialog: SendingDialog
    ) -> None:
        """Send; the steps go to `dialog`."""

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
        run, warnings = None, list[str]()
        try:
            run = self.runs.cancel(run_id, warn=warnings.append)
        finally:
            self.post_message(messages.RunCancelled(run, tuple(warnings)))

    @on(messages.WhyWanted)
    def _why_wanted(self, event: messages.WhyWanted) -> None:
        self._why(event)

    @work(thread=True, group="why", exit_on_error=False)
    def _why(self, wanted: messages.WhyWanted) -> None:
        found = None
        try:
            found = self.runs.why(wanted.run_id)
        finally:
            wanted.reply_to.post_message(messages.WhyFound(found))

    @on(messages.FiguresWanted)
    def _figures_wanted(self, event: messages.FiguresWanted) -> None:
        self._figures(event)
        if event.with_log:
            self._log_figures(event)

    @work(thread=True, group="figures", exit_on_error=False)
    def _figures(self, wanted: messages.FiguresWanted) -> None:
        figures = self.runs.figures(wanted.run_id)
        wanted.reply_to.post_message(messages.FiguresFound(wanted.offset, figures))

    @work(thread=True, group="log figures", exit_on_error=False)
    def _log_figures(self, wanted: messages.FiguresWanted) -> None:
        found = self.runs.log_figures(wanted.run_id)
        wanted.reply_to.post_message(messages.LogFiguresFound(found))

    @on(messages.FollowWanted)
    def _follow_wanted(self, event: messages.FollowWanted) -> None:
        self._follow(event)

    @work(thread=True, group="follow", exclusive=True, exit_on_error=False)
    def _follow(self, wanted: messages.FollowWanted) -> None:
        worker = get_current_worker()
        screen = wanted.reply_to

        def stop() -> bool:
            return worker.is_cancelled or self.leaving.is_set() or not screen.is_running

        try:
            for event in self.runs.show_log(
                wanted.run_id, attempt=wanted.attempt, offset=wanted.offset, stop=stop
            ):
                # A log that is written faster than it is drawn waits at the site.
                while screen.message_queue_size > MOST_WAITING and not stop():
                    time.sleep(0.05)
                screen.post_message(messages.LogNews(wanted.number, event))
        except LumiError:
            ended = LogEnded("stopped, l follows again")
            screen.post_message(messages.LogNews(wanted.number, ended))
            raise

    @on(messages.UnfollowWanted)
    def _unfollow_wanted(self) -> None:
        self.workers.cancel_group(self, "follow")
