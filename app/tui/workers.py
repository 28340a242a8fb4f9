"""The workers of the TUI: everything that may take time, in threads that touch no widget.

The app starts each of them, so that one handler sees every error; they answer by messages.
A send, a cancel and a resubmission are never exclusive: Textual marks the first of two as
cancelled, but both run.
"""

import sys
import time

from textual import events, on, work
from textual.worker import get_current_worker

from lumitui.app.job.spec import read_job
from lumitui.app.runs import Preview, Refreshed, Resubmission, Runs
from lumitui.app.settings import Settings
from lumitui.app.tui import messages
from lumitui.app.tui.screens.sending import SendingDialog
from lumitui.app.tui.terminal import TerminalApp
from lumitui.app.watch.follow_log import LogEnded
from lumitui.app.watch.schedule import Schedule
from lumitui.remote.connect import Connect
from lumitui.remote.errors import InputError, LumiError

MOST_WAITING = 8
"""Messages with pieces of a log that its pane has not drawn yet."""
TICK = 1.0
"""Seconds between two checks whether a site is due."""


def _tell(words: str) -> None:
    """Print a sentence on the terminal, which Textual has not taken yet."""
    print(words, file=sys.stderr, flush=True)


class WorkerApp(TerminalApp):
    """An app that refreshes the sites, and does in threads what its screens want."""

    def __init__(self, settings: Settings, connect: Connect) -> None:
        """Open the history; a site is refreshed only while it has unfinished runs."""
        super().__init__()
        self.runs: Runs = Runs(settings, ask=self.ask, connect=connect, tell=_tell)
        self.schedule = Schedule(last_input=time.monotonic())
        self.mutations = 0
        """Sends and cancels under way; the app ends only after them."""

    def on_unmount(self) -> None:
        """Let the threads end: they check `leaving`, and a closed connection answers nothing."""
        self.leaving.set()
        if not self.mutations:
            self.runs.close()

    # -- refreshes

    async def on_event(self, event: events.Event) -> None:
        """Record that a person is there."""
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
            pass  # the profile is gone: the warning of the refresh says so
        finally:
            self.post_message(messages.SiteRefreshed(site, refreshed, pause))

    @on(messages.SiteRefreshed)
    def _site_refreshed(self, event: messages.SiteRefreshed) -> None:
        found = event.refreshed or Refreshed((), (f"{event.site}: the refresh failed.",), 0)
        now = time.monotonic()
        self.schedule.ended(
            event.site, now, pause=event.pause, requests=found.requests, warnings=found.warnings
        )
        self.history_changed()

    def history_changed(self) -> None:
        """Let every screen read history again."""
        for screen in self.screen_stack:
            screen.post_message(messages.HistoryChanged())

    # -- launches

    @on(messages.PreviewWanted)
    def _preview_wanted(self, event: messages.PreviewWanted) -> None:
        self._preview(event)

    @work(thread=True, group="preview", exit_on_error=False)
    def _preview(self, wanted: messages.PreviewWanted) -> None:
        preview: Preview | None = None
        try:
            spec = read_job(wanted.path)  # refuses what no path could be made of
            path = wanted.path.resolve()
            preview = self.runs.preview(spec, path.parent, job_file=path)
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
            outcome = error  # the dialog shows it below the field that is wrong
        wanted.reply_to.post_message(messages.Planned(wanted.number, outcome))

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
        run, warnings = None, list[str]()
        try:
            run = self.runs.cancel(run_id, warn=warnings.append)
        finally:
            self.post_message(messages.RunCancelled(run, tuple(warnings)))

    # -- causes, metrics and logs

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
        pane = wanted.reply_to

        def stop() -> bool:
            return worker.is_cancelled or self.leaving.is_set() or not pane.is_running

        try:
            for event in self.runs.show_log(
                wanted.run_id, attempt=wanted.attempt, offset=wanted.offset, stop=stop
            ):
                # A log that is written faster than it is drawn waits at the site.
                while pane.message_queue_size > MOST_WAITING and not stop():
                    time.sleep(0.05)
                pane.post_message(messages.LogNews(wanted.number, event))
        except LumiError:
            ended = LogEnded("stopped, press l to follow again")
            pane.post_message(messages.LogNews(wanted.number, ended))
            raise

    @on(messages.UnfollowWanted)
    def _unfollow_wanted(self) -> None:
        self.workers.cancel_group(self, "follow")
