"""The TUI: a table of screens, what is asked before a mutation, one place that presents errors.

Screens only draw and ask (messages.py); everything that may take time is a worker (workers.py).
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from textual import on
from textual.app import SystemCommand
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.worker import Worker, WorkerState

from lumitui.app.history.run import Run
from lumitui.app.runs import Preview, Resubmission
from lumitui.app.settings import Settings
from lumitui.app.tui import messages
from lumitui.app.tui.screens.dialogs import (
    Confirm,
    ErrorDialog,
    HelpDialog,
    SendingDialog,
    keys_of,
)
from lumitui.app.tui.screens.new import NewScreen
from lumitui.app.tui.screens.resubmit import ResubmitDialog
from lumitui.app.tui.screens.run import RunScreen
from lumitui.app.tui.screens.runs import RunsScreen
from lumitui.app.tui.screens.sites import SitesScreen
from lumitui.app.tui.widgets import wording
from lumitui.app.tui.workers import TICK, WorkerApp
from lumitui.remote.connect import Connect, connect
from lumitui.remote.errors import InputError, LumiError


@dataclass(frozen=True)
class Place:
    """A screen that a digit opens."""

    name: str
    key: str
    title: str
    make: Callable[["LumiApp"], Screen[None]] | None
    """None: the first screen, which is always there."""


MOST_NAME = 20
"""Characters of a job's name in the title bar while it is sent."""

PLACES = (
    Place("runs", "1", "Runs", None),
    Place("new", "2", "New run", lambda app: NewScreen(app.runs)),
    Place("sites", "3", "Sites", lambda app: SitesScreen(app.runs, app.schedule)),
)


class LumiApp(WorkerApp):
    """The application."""

    TITLE = "lumitui"
    CSS_PATH = "lumitui.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        *(
            Binding(place.key, f"go('{place.name}')", place.title, show=False,
                    id=f"go.{place.name}", tooltip=f"The screen {place.title}")
            for place in PLACES
        ),
        Binding("colon,ctrl+p", "command_palette", "Commands", show=False, id="app.commands",
                tooltip="Find a command by its name"),
    ]  # fmt: skip

    def __init__(
        self, settings: Settings, job: Path | None = None, *, connect: Connect = connect
    ) -> None:
        """Open the history; `job` is opened in the screen that makes runs."""
        super().__init__(settings, connect)
        self._job = job
        self._sends: dict[SendingDialog, tuple[Path, str]] = {}
        """The sends under way: of which project, and the job's name."""
        self._quit_when_done = False
        self._last_repeated = ""

    def get_default_screen(self) -> Screen[None]:
        """Return the first screen."""
        return RunsScreen(self.runs, self.schedule)

    def on_mount(self) -> None:
        """Open the job that was given, and begin to refresh the sites."""
        self._warn()
        if self._job is not None:
            self.push_screen(NewScreen(self.runs, self._job))
        self.set_interval(TICK, self.tick)
        self.set_interval(TICK, self._warn)

    def _warn(self) -> None:
        """Show what the history has to report about its file."""
        for warning in self.runs.history.take_warnings():
            self.notify(warning, severity="warning", markup=False, timeout=20)
            self.history_changed()

    # -- errors

    @on(Worker.StateChanged)
    def _worker_changed(self, event: Worker.StateChanged) -> None:
        if event.state is WorkerState.ERROR and event.worker.error is not None:
            self._present(event.worker.error)

    @on(messages.Failed)
    def _failed(self, event: messages.Failed) -> None:
        if event.repeats and str(event.error) == self._last_repeated:
            return
        self._last_repeated = str(event.error) if event.repeats else self._last_repeated
        self._present(event.error)

    def _present(self, error: BaseException) -> None:
        """Show what went wrong: the one place where a person is told."""
        if not isinstance(error, LumiError):
            error = LumiError(
                f"lumitui made a mistake: {type(error).__name__}: {error}.",
                "What was sent is in the history; please report it.",
            )
        self.push_screen(ErrorDialog(error))

    # -- going places

    def action_go(self, name: str) -> None:
        """Open one of the places."""
        place = next(place for place in PLACES if place.name == name)
        self._to_first()
        if place.make is not None:
            self.push_screen(place.make(self))

    def _to_first(self) -> None:
        while len(self.screen_stack) > 1:
            self.pop_screen()

    @on(messages.RunWanted)
    def _run_wanted(self, event: messages.RunWanted) -> None:
        if isinstance(self.screen, RunScreen) and self.screen.chosen == event.run_id:
            self.screen.action_pane(event.pane)
        else:
            self.push_screen(RunScreen(self.runs, event.run_id, event.pane))

    def action_help(self) -> None:
        """Show the keys that work here."""
        self.push_screen(HelpDialog(keys_of(self.screen)))

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """Yield what the palette offers: the places, and Textual's own."""
        for place in PLACES:
            yield SystemCommand(
                place.title,
                f"The screen {place.title}",
                lambda name=place.name: self.action_go(name),
            )
        yield from super().get_system_commands(screen)

    # -- making runs

    @on(messages.ResubmitWanted)
    def _resubmit_wanted(self, event: messages.ResubmitWanted) -> None:
        def answered(plan: Resubmission | None) -> None:
            if plan is not None:
                self._sending(plan.preview, plan)

        if parent := self._run(event.run_id):
            dialog = ResubmitDialog(parent, parent.layout.nodes * event.factor)
            self.push_screen(dialog, answered)

    def _run(self, run_id: str) -> Run | None:
        """Return a run; None, and the person is told, when it cannot be read."""
        try:
            return self.runs.history.get(run_id)
        except LumiError as error:
            self._present(error)
            return None

    @on(messages.SendWanted)
    def _send_wanted(self, event: messages.SendWanted) -> None:
        self._sending(event.preview, event.resubmission)

    def _sending(self, preview: Preview, resubmission: Resubmission | None) -> None:
        """Send; what is on its way already is sent a second time only on purpose."""

        def answered(yes: bool | None) -> None:
            if yes:
                self._send(preview, resubmission)

        spec = preview.launch.spec
        if (preview.project, spec.name) in self._sends.values():
            lines = [("under way", f"{spec.name} is being sent already")]
            lines.append(("would be", "one job more, billed as well"))
            title = f"Send {wording.shorten(spec.name, MOST_NAME)} twice?"
            self.push_screen(Confirm(title, lines, "Send a second job"), answered)
        else:
            answered(yes=True)

    def _send(self, preview: Preview, resubmission: Resubmission | None) -> None:
        name = preview.launch.spec.name
        dialog = SendingDialog(name)
        self.mutations += 1
        self._sends[dialog] = (preview.project, name)
        self._tell_sends()
        self.push_screen(dialog)
        self.send_launch(preview, resubmission, dialog)

    def _tell_sends(self) -> None:
        """Let every title bar say what is being sent."""
        names = [wording.shorten(name, MOST_NAME) for _, name in self._sends.values()]
        words = names[0] if len(names) == 1 else f"{len(names)} jobs"
        self.sub_title = wording.plain(f"sending {words}").plain if names else ""

    @on(messages.SendEnded)
    def _send_ended(self, event: messages.SendEnded) -> None:
        assert isinstance(event.dialog, SendingDialog)
        seen = event.dialog.finish()
        del self._sends[event.dialog]
        self._tell_sends()
        self.history_changed()
        if event.run is not None:
            self.notify(f"{event.run.id} is job {event.run.job_id}.", markup=False)
            if seen and not self._quit_when_done:
                self._to_first()
                self.push_screen(RunScreen(self.runs, event.run.id))
        self._mutated(well=event.run is not None)

    def _mutated(self, *, well: bool) -> None:
        """A send or cancel is over; leave if that was waited for, and no error is to be read."""
        self.mutations -= 1
        self._quit_when_done = self._quit_when_done and well
        if self._quit_when_done and not self.mutations:
            self.exit(0)

    # -- runs that are there

    @on(messages.CancelWanted)
    def _cancel_wanted(self, event: messages.CancelWanted) -> None:
        def answered(yes: bool | None) -> None:
            if yes:
                self.mutations += 1
                self.cancel_run(event.run_id)

        run = self._run(event.run_id)
        if run is None:
            return
        if run.state.is_final:
            words = f"{run.id} has ended: {run.state}."
            self._present(InputError(words, "There is nothing to cancel."))
            return
        lines = [("state", str(run.state)), ("job", run.job_id or "not known yet")]
        lines.append(("asks for", wording.size_of(run.layout)))
        self.push_screen(Confirm(f"Cancel {run.id}?", lines, "Cancel the job"), answered)

    @on(messages.RunCancelled)
    def _cancelled(self, event: messages.RunCancelled) -> None:
        if event.run is not None:
            self.notify(f"{event.run.id}: {event.run.state}.", markup=False)
        for words in event.warnings:
            self.notify(words, severity="warning", markup=False)
        self.history_changed()
        self._mutated(well=event.run is not None)

    # -- leaving

    async def action_quit(self) -> None:
        """Quit; while something is being sent, ask first and finish it."""
        if not self.mutations:
            self.exit(0)
            return

        def answered(yes: bool | None) -> None:
            self._quit_when_done = bool(yes) and self.mutations > 0
            if yes and not self.mutations:
                self.exit(0)

        lines = [("under way", f"{self.mutations} (sending or cancelling)")]
        self.push_screen(Confirm("Quit when that is done?", lines, "Quit then"), answered)


def run_tui(settings: Settings, job: Path | None = None) -> int:
    """Run the TUI until the person quits; returns the exit code.

    Raises:
        Exception: a defect of the program, for whoever reports it.
    """
    app = LumiApp(settings, job)
    try:
        code = app.run()
        if app.defect is not None:
            raise app.defect
        return code or app.return_code or 0
    finally:
        app.runs.close()
