"""The TUI: its screens, navigation and start.

Screens only draw and send requests. Slow work runs in a thread (asking.py), changes on a site need
confirmation (flows/), and errors are shown in one place (terminal.py).
"""

import asyncio
import gc
import signal
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, ClassVar

from rich.terminal_theme import TerminalTheme
from textual import events, on
from textual.app import SystemCommand
from textual.await_complete import AwaitComplete
from textual.binding import Binding, BindingType
from textual.command import Provider
from textual.filter import LineFilter
from textual.notifications import Notify
from textual.reactive import var
from textual.screen import Screen
from textual.theme import Theme
from textual.widget import Widget

from lumitui.app.runs import LumiError, Runs, Schedule, Settings, SiteLink, is_first_run
from lumitui.app.tui.flows.cancels import Cancels
from lumitui.app.tui.flows.first_run import follow_demo
from lumitui.app.tui.flows.leaving import Leaving
from lumitui.app.tui.flows.sends import Sends
from lumitui.app.tui.loop.key_order import OrderedKeysApp
from lumitui.app.tui.messages import HistoryChanged
from lumitui.app.tui.notices import TOAST_SECONDS, Notices
from lumitui.app.tui.preferences.contrast import ReadableText, SixteenColours, WithoutColour
from lumitui.app.tui.preferences.themes import (
    calm,
    keep_theme,
    kept_theme,
    offer_themes,
    terminal_colours,
)
from lumitui.app.tui.refreshes import TICK, Refreshes
from lumitui.app.tui.screens.runs_screen import RunsScreen
from lumitui.app.tui.terminal import Errors, ask_person

if TYPE_CHECKING:
    from lumitui.app.runs import Connect, Draft, Run
    from lumitui.app.tui.panes.log_pane import LogPlace

# With the proof of 8,192 ranks on the screen, a full collection takes over 40 ms, and Python runs
# one at every 20th key, even after gc.freeze() alone.
_ENOUGH = 10  # number of middle-generation collections after which Python would run a full one
_TOO_MANY = 100
"""Seconds after which a full collection runs despite typing, before garbage fills the memory."""
_QUIET = 1.0  # seconds without a key press after which the user counts as idle
_JUST = 1.0  # seconds in which a toast has not been read


@dataclass(frozen=True)
class ScreenKey:
    """A screen that a digit opens."""

    name: str
    key: str
    title: str
    make: Callable[["LumiApp"], Screen[None]] | None
    """None: the first screen, which always exists."""


# The first paint needs only the first screen: the others are imported when opened.


def _new(app: "LumiApp", job: Path | None = None, *, fresh: bool = False) -> Screen[None]:
    from lumitui.app.tui.screens.new_screen import NewScreen

    return NewScreen(app.runs, job, fresh=fresh)


def _sites(app: "LumiApp") -> Screen[None]:
    from lumitui.app.tui.screens.sites_screen import SitesScreen

    return SitesScreen(app.runs, app.schedule)


def _cluster(app: "LumiApp", site: str | None = None) -> Screen[None]:
    from lumitui.app.tui.screens.cluster_screen import ClusterScreen

    return ClusterScreen(app.runs, site)


def _guide(app: "LumiApp") -> Screen[None]:
    from lumitui.app.tui.screens.guide_screen import GuideScreen

    return GuideScreen(app.runs, app.settings)


PLACES = (
    ScreenKey("runs", "1", "Runs", None),
    ScreenKey("new", "2", "New run", _new),
    ScreenKey("sites", "3", "Sites", _sites),
    ScreenKey("cluster", "4", "Cluster", _cluster),
    ScreenKey("guide", "0", "First run", _guide),
)
LATE_STYLES = (
    "sites", "cluster", "run", "log", "compare", "grid", "new", "scaling", "guide", "dialogs",
)  # fmt: skip
"""The style sheets that the first screen does not need, in cascade order."""


def actions() -> type[Provider]:
    """Return the palette's provider, imported when the palette opens."""
    from lumitui.app.tui.dialogs.palette import Actions

    return Actions


class LumiApp(OrderedKeysApp):
    """The application over one history and its connections; it delegates to its parts."""

    TITLE = "lumitui"
    NOTIFICATION_TIMEOUT = TOAST_SECONDS
    CSS_PATH: ClassVar[list[str | PurePath]] = ["styles/page.tcss", "styles/runs.tcss"]
    VERTICAL_BREAKPOINTS = [(0, "-low"), (16, "-high")]  # noqa: RUF012 - as Textual types it
    COMMANDS: ClassVar[set[type[Provider] | Callable[[], type[Provider]]]] = {actions}
    BINDINGS: ClassVar[list[BindingType]] = [
        *(
            Binding(place.key, f"go('{place.name}')", place.title, show=False,
                    id=f"go.{place.name}", tooltip=f"Open the {place.title} screen")
            for place in PLACES
        ),
        Binding("U", "unsent", "Send the rest", show=False, id="app.unsent",
                tooltip="Send the remaining runs of a grid or ladder"),
        Binding("colon,ctrl+p", "command_palette", "Commands", show=False, id="app.commands",
                tooltip="Find a command by its name"),
    ]  # fmt: skip

    absence: var[str] = var("")
    """The runs that ended while the TUI was closed, in the title bars until a key is pressed."""
    links: var[tuple[SiteLink, ...]] = var(())
    """The sites with unfinished runs, and whether they answer; every title bar shows them."""
    job_file: Path | None = None
    """The job file that the New screen had open last."""
    kept: "Draft | None" = None
    """The job file that a user left without saving it."""
    sent = ""
    """The text of the job file submitted last: a run has it, so quitting does not lose it."""

    def __init__(
        self,
        settings: Settings,
        job: Path | None = None,
        *,
        demo: bool = False,
        connect: "Connect | None" = None,
        runs: Runs | None = None,
    ) -> None:
        """Open the history, and the job file `job` on the New screen.

        If `demo` is set, the job is the demo's: once both of its runs have ended, the screen that
        compares them opens. `runs` is a history that several apps share and none of them closes. A
        site is refreshed only while it has unfinished runs.
        """
        super().__init__()
        self._job, self._demo, self._shares_runs = job, demo, runs is not None
        self._place: Screen[None] | None = None  # the place opened last
        self._own_filters = (ReadableText(),)
        self._sixteen = (SixteenColours(),) if self.console.color_system == "standard" else ()
        if self.no_color:
            self._filters.insert(1, WithoutColour())  # before the colours become greys
        self.settings = settings
        self.runs = runs or Runs(settings, ask=partial(ask_person, self), connect=connect)
        self.owns_process = False
        """Whether nothing else runs in this process, so garbage can wait for a quiet moment."""
        self.defect: Exception | None = None
        """The exception that ended the app, if one did."""
        self.ending, self.schedule = threading.Event(), Schedule(last_input=time.monotonic())
        self.under_way: list[str] = []
        """Descriptions of running sends and cancels; the app exits only after they finish."""
        self.own_cancels: set[str] = set()
        """Runs that the user cancels here: their ends need no notification."""
        self.log_places: dict[str, LogPlace] = {}
        """The last position in each run's log, by run id."""
        self._errors, self.notices = Errors(self), Notices(self)
        self._refreshes, self.leaving = Refreshes(self, self.notices), Leaving(self)
        self.measured_sites: set[str] = set()
        """The sites where the app is waiting for a measuring job."""
        self.sends, self.cancels = Sends(self, self.leaving), Cancels(self, self.leaving)
        offer_themes(self, kept_theme(settings.theme))

    def get_default_screen(self) -> Screen[None]:
        return RunsScreen(self.runs, self.schedule)

    def on_mount(self) -> None:
        """Open the given job file or, on the very first start, the guide; start refreshing."""
        self._use_keymap()
        self._warn()
        self.leaving.restore_edits(self._job)
        self.theme_changed_signal.subscribe(self, self._keep_theme)
        if self._job is not None:
            self.push_screen(_new(self, self._job))
        elif not self.runs.history.page(1) and is_first_run(self.settings):
            self.push_screen(_guide(self))
        if self._job is not None and self._demo:
            follow_demo(self, self._job)
        self.sends.say_unsent()
        self.set_interval(TICK, self.tick)
        self.set_interval(TICK, self._warn)
        if self.owns_process:
            for number in (signal.SIGTERM, signal.SIGHUP):
                if signal.getsignal(number) is signal.SIG_DFL:  # not under nohup, nor in the tour
                    asyncio.get_running_loop().add_signal_handler(number, self._end, number)
            gc.set_threshold(*gc.get_threshold()[:2], _TOO_MANY)
            self.call_after_refresh(gc.freeze)  # modules and classes are never garbage
            self.call_after_refresh(gc.enable)
            self.set_interval(TICK, self._rest)

    def _end(self, number: signal.Signals) -> None:
        """End after a signal and keep unsaved edits; the next signal ends the process at once."""
        asyncio.get_running_loop().remove_signal_handler(number)
        self.leaving.keep_edits()
        if number is signal.SIGHUP:  # without a terminal, there is nothing to restore
            signal.raise_signal(number)
        self.exit(128 + number)

    def _rest(self) -> None:
        """Collect garbage while the user does not type."""
        if gc.get_count()[2] >= _ENOUGH and time.monotonic() - self.schedule.last_input >= _QUIET:
            gc.collect()

    def _warn(self) -> None:
        """Show the history's messages about its file."""
        for warning in self.runs.history.take_warnings():
            self.notify(warning, severity="warning", markup=False, timeout=20)
            self.history_changed()

    def _use_keymap(self) -> None:
        """Use the user's keys; warn about invalid lines."""
        files = [file for file in self.settings.files if file.exists()]
        if not files:
            return
        from lumitui.app.tui.preferences.keymap import read_keymap

        keymap = read_keymap(*files)
        self.set_keymap(keymap.keys)
        for warning in keymap.warnings:
            self.notify(warning, severity="warning", markup=False, timeout=20)

    def _keep_theme(self, theme: Theme) -> None:
        """Save this theme for the next start."""
        try:
            if theme.name != kept_theme(self.settings.theme):
                keep_theme(self.settings.theme, theme.name)
        except OSError as error:
            warning = f"Could not save the theme: {self.settings.theme}: {error.strerror}."
            self.notify(warning, severity="warning", markup=False)

    def below(self) -> Iterable[Widget]:
        """Yield the widgets above a screen's keys: none, except in the tour."""
        return ()

    def action_go(self, name: str, fresh: bool = False) -> None:
        """Open one of the main screens, `fresh` without the last job file; esc returns."""
        place = next(place for place in PLACES if place.name == name)
        if place.make is None:
            self.to_first()
            return
        # A place that is already open is closed with everything above it, or esc would never reach
        # the first screen.
        while self._place in self.screen_stack:
            self.pop_screen()
        self._place = _new(self, fresh=True) if fresh else place.make(self)
        self.push_screen(self._place)

    def to_first(self) -> None:
        """Close every screen but the first."""
        while len(self.screen_stack) > 1:
            self.pop_screen()

    def open_run(self, run_id: str, pane: str = "overview") -> None:
        """Open a run at one of its panes, or show why it cannot be read."""
        from lumitui.app.tui.screens.run_screen import RunScreen

        if isinstance(self.screen, RunScreen) and self.screen.chosen == run_id:
            self.screen.action_pane(pane)
        elif self.run_of(run_id):
            self.push_screen(RunScreen(self.runs, run_id, pane))

    def open_compare(self, run_ids: tuple[str, ...]) -> None:
        """Compare two to four runs."""
        from lumitui.app.tui.screens.compare_screen import CompareScreen

        self.push_screen(CompareScreen(self.runs, run_ids))

    def open_grid(self, run_id: str) -> None:
        """Compare the runs of a grid."""
        from lumitui.app.tui.screens.grid_screen import GridScreen

        self.push_screen(GridScreen(self.runs, run_id))

    def open_scaling(self, run_id: str) -> None:
        """Open the screen with a run's scaling."""
        from lumitui.app.tui.screens.scaling_screen import ScalingScreen

        if self.run_of(run_id) is not None:
            self.push_screen(ScalingScreen(self.runs, run_id))

    def open_cluster(self, site: str) -> None:
        """Open the Cluster screen at a site."""
        self.push_screen(_cluster(self, site))

    def measure(
        self, asker: Screen[None], site: str, account: str, saved: Callable[[], object]
    ) -> None:
        """Measure a node of a site, after a yes to the price; see `Measurement`."""
        from lumitui.app.tui.flows.measuring import Measurement

        Measurement(asker, site, account, saved).begin()

    def open_job(self, job: Path, *, demo: bool = False) -> None:
        """Open a job file on the New screen; esc leads back to where the user was."""
        self.push_screen(_new(self, job))
        if demo:
            follow_demo(self, job)

    def run_of(self, run_id: str) -> "Run | None":
        """Return a run; None, after showing the error, if the history is unreadable."""
        try:
            return self.runs.history.get(run_id)
        except LumiError as error:
            self.show_error(error)
            return None

    def history_changed(self) -> None:
        """Make every visible screen reread the history; the others do so when shown.

        A screen below a full one is not notified, because Textual would redraw all of the screen
        above with each message.
        """
        for screen in reversed(self.screen_stack):
            screen.post_message(HistoryChanged())
            if not screen.is_modal:
                break

    def tick(self, *, asked: bool = False) -> None:
        """Refresh every due site; `asked` is True if the user requested it."""
        self._refreshes.tick(asked=asked)

    @on(Notify)
    def _keep_two(self) -> None:
        """Show a toast beside the newest one, at most two."""
        for older in list(self._notifications)[:-1]:
            self._unnotify(older, refresh=False)

    def _drop_toasts(self) -> None:
        """Drop short toasts on the screen that closes or is covered, except one just shown."""
        for toast in list(self._notifications):
            if toast.timeout <= TOAST_SECONDS and time.time() - toast.raised_at > _JUST:
                self._unnotify(toast, refresh=False)

    def write_out(self, sequence: str) -> None:
        """Write a control sequence to the terminal."""
        if sequence and self._driver is not None:
            self._driver.write(sequence)

    def action_unsent(self) -> None:
        """Ask whether to send the rest of the newest series."""
        self.sends.ask_for_rest()

    async def on_event(self, event: events.Event) -> None:
        """Record that the user is present."""
        if isinstance(event, events.Key | events.MouseDown | events.AppFocus):
            self.schedule.last_input = time.monotonic()
        if isinstance(event, events.Key):
            self.absence = ""  # the user has seen it
        if isinstance(event, events.AppFocus | events.AppBlur):
            self.schedule.focused = isinstance(event, events.AppFocus)
        await super().on_event(event)

    @on(events.AppBlur)
    def _left(self) -> None:
        self.notices.keep_last_seen()

    def get_line_filters(self) -> Sequence[LineFilter]:
        """Return Textual's filters, followed by those that make text readable and safe."""
        sixteen = () if self.is_headless else self._sixteen  # headless drawings have all colours
        return [*super().get_line_filters(), *self._own_filters, *sixteen]

    def get_css_variables(self) -> dict[str, str]:
        """Return the theme's colours, muted where Textual's are bright."""
        return calm(super().get_css_variables())

    @property
    def ansi_theme(self) -> TerminalTheme:
        """The theme's values for the ANSI colours in texts."""
        return terminal_colours(self.current_theme)

    def refresh_css(self, animate: bool = True) -> None:
        """Reapply the style sheets, if a screen uses them.

        Otherwise, a theme chosen before the start would cause all of them to be parsed again.
        """
        if self.screen_stack:
            super().refresh_css(animate)
        else:
            self.stylesheet.set_variables(self.get_css_variables())

    def show_error(self, error: BaseException, *, repeats: bool = False) -> None:
        """Show an error in a dialog; every error of the TUI is shown here."""
        self._errors.show(error, repeats=repeats)

    @on(events.DescendantBlur)
    def _field_left(self) -> None:
        self._errors.show_next_later()

    def push_screen(self, *given: Any, **options: Any) -> Any:
        """Open a screen; before the first one, read the remaining style sheets."""
        source = (__file__, "late")
        if not self.stylesheet.has_source(*source):
            sheets = (Path(__file__).parent / f"styles/{name}.tcss" for name in LATE_STYLES)
            text = "".join(sheet.read_text(encoding="utf-8") for sheet in sheets)
            self.stylesheet.add_source(text, source)
        self._drop_toasts()
        return super().push_screen(*given, **options)

    def pop_screen(self) -> AwaitComplete:
        """Close the top screen, then show any error deferred until then."""
        self._drop_toasts()
        closing = super().pop_screen()
        self._errors.show_next_later()
        return closing

    def _handle_exception(self, error: Exception) -> None:
        """Keep the first internal error for the report."""
        self.defect = self.defect or error
        super()._handle_exception(error)

    def _fatal_error(self) -> None:
        """Exit like Textual, but without its traceback, which shows local variables and secrets."""
        self._close_messages_no_wait()

    async def action_quit(self) -> None:
        """Quit; ask about running operations and unsaved edits together."""
        self.leaving.quit()

    def on_unmount(self) -> None:
        """Let the threads end: they check `ending`, and closed connections end their requests."""
        self.notices.keep_last_seen()
        self.ending.set()
        if not self.under_way and not self._shares_runs:
            self.runs.close()

    def action_command_palette(self) -> None:
        from lumitui.app.tui.dialogs.palette import Palette

        if not isinstance(self.screen, Palette):
            self.push_screen(Palette(id="--command-palette"))

    def action_help(self) -> None:
        """Show the keys that work here, and explain the findings."""
        from lumitui.app.tui.dialogs.notice_dialogs import HelpDialog
        from lumitui.app.tui.dialogs.palette import actions_of
        from lumitui.app.tui.screens.page import FullScreen

        below = self.screen
        explained = below.explained() if isinstance(below, FullScreen) else ()
        self.push_screen(HelpDialog(actions_of(below), explained))

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """Yield Textual's commands that none of our keys replaces."""
        for command in super().get_system_commands(screen):
            if command.title in ("Theme", "Screenshot"):
                yield command
        where = f"Where to set keys, notifications and the theme ({self.settings.file.name})"
        said = f"Set `keys:` and `notify:` in {self.settings.file}. The palette saves the theme."
        show = partial(self.notify, said, title="Settings", markup=False, timeout=20)
        yield SystemCommand("Settings", where, show)


def run_tui(settings: Settings, job: Path | None = None, *, demo: bool = False) -> int:
    """Run the TUI, with a job file or the demo's, until the user quits; return the exit code.

    Raises:
        Exception: an internal error, which the caller reports.
    """
    app = LumiApp(settings, job, demo=demo)
    try:
        return run_app(app)
    finally:
        app.runs.close()


def run_app(app: LumiApp) -> int:
    """Run an app until the user quits; return the exit code.

    Raises:
        Exception: an internal error, which the caller reports.
    """
    app.owns_process = True
    code = app.run()
    if app.defect is not None:
        raise app.defect
    return code or app.return_code or 0
