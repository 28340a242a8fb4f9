"""The TUI on recorded data: every key works as usual, and nothing reaches a cluster."""

import os
import shutil
import signal
from collections.abc import Iterable
from contextlib import chdir
from pathlib import Path, PurePath
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.reactive import var
from textual.widget import Widget

from lumitui.app.runs import LumiError, State
from lumitui.app.runs.tour.recorded_runs import RecordedRuns, recorded_runs
from lumitui.app.tui import app as app_module
from lumitui.app.tui.app import LumiApp, run_app
from lumitui.app.tui.tour.tour_line import TourLine
from lumitui.app.tui.tour.tour_stops import END, STOPS, place_of

_LOOK = 0.25  # seconds between two checks of the user's position


class TourApp(LumiApp):
    """The app with the tour line on each screen."""

    TITLE = "lumitui: a recording"
    # Textual looks for style sheets beside the module of a class.
    CSS_PATH: ClassVar[list[str | PurePath]] = [
        Path(app_module.__file__).parent / path for path in LumiApp.CSS_PATH
    ]
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+t", "tour_line", "Tour", show=False, id="tour.line",
                tooltip="Hide or show the tour line"),
    ]  # fmt: skip

    stop: var[int] = var(0)
    shows_line: var[bool] = var(True)
    astray: var[str] = var("")
    """The stop's run while the user is at another one."""

    def __init__(self, runs: RecordedRuns) -> None:
        super().__init__(runs.own, runs=runs)
        self._reached = False  # whether the user has reached the stop's destination
        training = (run.id for run in runs.history.page() if run.state is State.RUNNING)
        self._run = next(training, "")

    def on_mount(self) -> None:
        self.set_interval(_LOOK, self._look)

    def below(self) -> Iterable[Widget]:
        """Yield the tour line, which each screen shows above its keys."""
        yield TourLine()

    def action_tour_line(self) -> None:
        self.shows_line = not self.shows_line

    def _look(self) -> None:
        """Continue to the next stop if the user has completed this one, with its run."""
        stop = STOPS[self.stop] if self.stop < len(STOPS) else END
        chosen = getattr(self.screen, "chosen", None) if stop.of_one_run else None
        self.astray = self._run if chosen not in (None, self._run) else ""
        if stop.leads and self._user_at() == stop.leads and not self.astray:
            self._reached = True
        # A dialog would receive the next stop's keys, so the user must close it first.
        if self._reached and not self.screen.is_modal:
            self._reached = False
            self.stop += 1

    def _user_at(self) -> str:
        from lumitui.app.tui.screens.run_screen import RunScreen

        screen = self.screen
        if not isinstance(screen, RunScreen):
            return place_of(type(screen).__name__, "", "")
        try:
            state = self.runs.history.get(screen.chosen).state
        except LumiError:
            return ""  # the screen shows it
        return place_of("RunScreen", screen.shown_panes[0], state)


def run_tour() -> int:
    """Run the tour until the user quits; return the exit code."""
    # Files saved on the New screen go to the current folder.
    with recorded_runs() as runs, chdir(runs.project):
        app, folder = TourApp(runs), runs.project.parent

        def hang_up(*_: object) -> None:
            shutil.rmtree(folder, ignore_errors=True)
            os._exit(128 + signal.SIGHUP)  # the terminal is gone and cannot be written to

        # The recorded data is also removed if a signal ends the tour; the app exits on SIGTERM.
        signal.signal(signal.SIGHUP, hang_up)
        return run_app(app)
