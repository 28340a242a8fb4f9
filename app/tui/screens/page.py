"""Common parts of full screens: a title bar, a footer, a way back, and the keys of a run."""

import signal
import sys
import termios
from collections.abc import Callable, Sequence
from typing import ClassVar

from rich.text import Text
from textual import on
from textual.app import ComposeResult, SuspendNotSupported
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.widgets import Static

from lumitui.app.runs import InputError, LinkState, LumiError, Run, Runs, State, link_titles
from lumitui.app.tui import messages
from lumitui.app.tui.asking import as_lumi_error, ask, show_error, tui
from lumitui.app.tui.loop.row_compositor import RowCompositor
from lumitui.app.tui.widgets import styled
from lumitui.app.tui.widgets.bars import footer

LINK_STYLES = {
    LinkState.LIVE: "green", LinkState.INCOMPLETE: "yellow", LinkState.CONNECTING: "yellow",
    LinkState.RECONNECTING: "bold yellow", LinkState.OFFLINE: "bold red",
    LinkState.LOGIN: "bold yellow", LinkState.PAUSED: "dim",
}  # fmt: skip
"""Colours of states; the state itself is always shown as a word."""
TABS = ("1 Runs", "2 New", "3 Sites", "4 Cluster", "0 Guide")
"""Names of the screens that digits open."""
AIRY = 36
"""Minimum lines to show a blank row below the title bar."""
EXPLAINED_WIDTH = 70
"""Width of the texts below the keys, in cells: it fits the box of `?` at 80 columns."""


class FullScreen(Screen[None]):
    """A full screen. It reads the history when it is shown and when the history changes."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("question_mark", "app.help", "Help", key_display="?", id="app.help",
                tooltip="Show the keys that work here"),
        Binding("q", "app.quit", "Quit", id="app.quit", tooltip="Quit, after any unfinished send"),
        Binding("escape", "back", "Back", id="page.back", tooltip="Go back one screen"),
    ]  # fmt: skip

    def __init__(self, runs: Runs) -> None:
        super().__init__(classes="-high")  # the usual case: a later change is styled twice
        self._compositor = RowCompositor()
        self.runs = runs
        self._title_parts: tuple[str | Text, ...] = ()
        self._title = Text()
        self._stamp: tuple[int, ...] = ()
        self._moves = True

    def compose(self) -> ComposeResult:
        """Yield the title bar, the body and the footer."""
        yield Static(id="title", markup=False)
        yield from self.body()
        yield from tui(self).below()
        yield footer()

    def explained(self) -> Sequence[str]:
        """Return the texts of rules and causes that `?` shows below the keys."""
        return ()

    def on_mount(self) -> None:
        """Begin, unless the app exits: a screen that opens then is never composed."""
        if self.query("#title"):
            self.begin()
            for name in ("sub_title", "links", "absence"):
                self.watch(self.app, name, self._draw_title_bar)

    def begin(self) -> None:
        """Draw the screen for the first time."""

    def body(self) -> ComposeResult:
        """Yield the widgets between title bar and footer."""
        raise NotImplementedError

    def draw(self) -> None:
        """Show the history's current state."""

    @property
    def is_seen(self) -> bool:
        """Whether only dialogs are above the screen.

        Textual's `is_current` is also true for a screen that another one covers, and redraws all of
        the upper one when the lower one changes.
        """
        above = self.app.screen_stack[::-1]
        return self in above and all(screen.is_modal for screen in above[: above.index(self)])

    @on(messages.HistoryChanged)
    def reread(self) -> None:
        """Draw again; show errors instead of raising them."""
        if not self.query("#title") or not self.is_seen:
            return  # not composed yet, or never if the app is exiting
        try:
            self.draw()
        except LumiError as error:
            show_error(self, error, repeats=True)

    def every_second(self) -> None:
        """Draw again if the history has changed or the display depends on the time."""
        if not self.is_seen:
            return
        try:
            stamp = self.runs.history.stamp()
            if stamp != self._stamp:
                self._stamp, self._moves = stamp, self.moves()
            elif not self._moves:
                self.pass_time()
                return
        except LumiError as error:
            show_error(self, error, repeats=True)
            return
        self.reread()

    def pass_time(self) -> None:
        """Redraw only texts that depend on the time, such as an age; called each second."""

    def moves(self) -> bool:
        """Return whether the display changes with time alone, like the times of a running job."""
        return self.runs.history.count_unfinished() > 0

    def title_text(self, *parts: str | Text) -> None:
        """Show `parts` in the title bar."""
        self._title_parts = parts
        self._draw_title_bar()

    def _draw_title_bar(self) -> None:
        if not self.is_seen:
            return
        # Running sends come first, because their dialog can be hidden. The links keep their place:
        # the notifications beside them are cut.
        text, links = Text().append(f" {self.app.title} ", "bold magenta"), Text()
        for state, link in link_titles(tui(self).links, max(10, self.size.width * 2 // 5)):
            links.append("  ").append(styled.plain(link, LINK_STYLES[state]))
        app = tui(self)
        for news, colour in ((app.sub_title, "cyan"), (app.absence, "yellow")):
            room = self.size.width - text.cell_len - links.cell_len - 2
            if news and room > 0:
                said = Text(f" ● {news}", f"bold {colour}", end="")
                said.truncate(room + 1, overflow="ellipsis")
                text.append(said).append(" ", said.style)
        text.append(links)
        name, *parts = self._title_parts or ("",)
        rest = Text()
        for part in parts:
            rest.append("  ").append(styled.plain(part, "dim") if isinstance(part, str) else part)
        room = self.size.width - text.cell_len - rest.cell_len - 3
        # All names or only this one: digits alone tell nothing.
        tabs = Text("  ").join(Text(tab, "bold" if tab == name else "dim") for tab in TABS)
        if name not in TABS or tabs.cell_len >= room:
            tabs = styled.plain(name, "bold") if isinstance(name, str) else name
        if name in TABS:  # beside the tabs, text would look like a tab
            tabs.pad_right(room - tabs.cell_len)
        text.append("  ").append(tabs).append(rest)
        text.truncate(self.size.width, overflow="ellipsis")
        if text != self._title:
            self._title = text
            self.query_one("#title", Static).update(text, layout=False)

    def on_resize(self) -> None:
        """Show as much of the title bar as fits."""
        self.set_class(self.size.height >= AIRY, "-airy")
        if self.query("#title"):
            self._draw_title_bar()

    def on_screen_resume(self) -> None:
        """Draw again, since the screen above has closed."""
        self.reread()
        if self.query("#title"):
            self._draw_title_bar()

    def action_refresh_sites(self) -> None:
        tui(self).tick(asked=True)

    def action_back(self) -> None:
        """Leave the screen; the first one stays."""
        if len(self.app.screen_stack) > 1:
            self.app.pop_screen()


class RunScreenBase(FullScreen):
    """A screen with a run to act on: the displayed or selected run."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("l", "pane('log')", "Log", id="run.log", tooltip="Follow the log of the run"),
        Binding("plus,equals_sign", "resubmit(2)", "Resubmit x2", key_display="+", id="run.scale",
                tooltip="Resubmit it on twice the nodes; shows the changes first"),
        Binding("R", "resubmit(1)", "Resubmit", id="run.again",
                tooltip="Resubmit it on the same number of nodes; shows the changes first"),
        Binding("c", "cancel", "Cancel", id="run.cancel",
                tooltip="Cancel the job, after confirmation"),
        Binding("d", "pane('why')", "Why", id="run.why",
                tooltip="Show why the run failed, or why it waits"),
        Binding("b", "pane('script')", "Script", show=False, id="run.script",
                tooltip="Show the job script that was sent, and the submit command"),
        Binding("p", "pane('proof')", "Proof", show=False, id="run.proof",
                tooltip="Show the cores and GPUs measured for each rank"),
        Binding("m", "pane('metrics')", "Metrics", show=False, id="run.metrics",
                tooltip="Show loss and throughput"),
        Binding("S", "scaling", "Scaling", show=False, id="run.scaling",
                tooltip="Show how the run scales, and predict other sizes"),
        Binding("x", "grid", "Grid", show=False, id="run.grid",
                tooltip="Compare the settings of its grid"),
        Binding("u", "pane('gpus')", "GPUs", show=False, id="run.gpus",
                tooltip="Show the power and utilization of the running job's GPUs"),
        Binding("exclamation_mark", "shell", "Shell", show=False, key_display="!", id="run.shell",
                tooltip="Open a shell inside the running job; exit returns here"),
        Binding("y", "copy", "Copy", show=False, id="run.copy",
                tooltip="Copy the run's id to the clipboard"),
        Binding("r", "refresh_sites", "Refresh", show=False, id="page.refresh",
                tooltip="Poll the sites now"),
    ]  # fmt: skip

    _opens_shell = False
    seen_run: Run | None = None
    """The run to act on, as last read, or None."""

    @property
    def chosen(self) -> str | None:
        """The id of the run to act on, or None."""
        raise NotImplementedError

    def offers(self, action: str) -> bool:
        """Return whether the footer shows a key, which depends on the run's state."""
        again = action.startswith("resubmit(")
        if (run := self.seen_run) is None:
            return action not in ("pane('log')", "cancel", "pane('why')") and not again
        if again:  # twice the nodes would fail twice
            failed = run.state.is_final and run.state not in (State.DONE, State.CANCELLED)
            return failed is (action == "resubmit(1)")
        if action == "cancel":
            return not run.state.is_final
        if action == "pane('why')":
            return run.state not in (State.DONE, State.CANCELLED)
        if action in ("pane('log')", "fetch"):
            return bool(run.job_id) and (run.state is not State.QUEUED or bool(run.attempts))
        return True

    def _chosen(self) -> str:
        if self.chosen is None:
            raise InputError("No run is selected.", "Press n to create one from a job file.")
        return self.chosen

    def _act(self, do: Callable[[str], object]) -> None:
        try:
            do(self._chosen())
        except LumiError as error:
            show_error(self, error)

    def action_pane(self, pane: str) -> None:
        self._act(lambda run: tui(self).open_run(run, pane))

    def action_resubmit(self, factor: int) -> None:
        """Open the dialog that sends the run again."""
        self._act(lambda run: tui(self).sends.resubmit(run, factor))

    def action_scaling(self) -> None:
        """Open the screen with the run's scaling."""
        self._act(tui(self).open_scaling)

    def action_grid(self) -> None:
        """Open the screen that compares the runs of a grid."""
        self._act(tui(self).open_grid)

    def action_cancel(self) -> None:
        self._act(tui(self).cancels.cancel)

    def action_shell(self) -> None:
        """Open a shell inside the running job, in this terminal."""
        if not self._opens_shell:
            self._act(self._open_shell)

    def _open_shell(self, run_id: str) -> None:
        self._opens_shell = True
        self.notify("Opening a shell in the job…", timeout=3, markup=False)
        ask(self, lambda runs: runs.prepare_shell(run_id), self._lend_terminal,
            failed=lambda error: setattr(self, "_opens_shell", False))  # fmt: skip

    def _lend_terminal(self, shell: Callable[[], int]) -> None:
        """Hand the terminal to `shell` until it ends."""
        self._opens_shell = False
        failure: LumiError | None = None
        try:
            with self.app.suspend():
                print("A shell inside the job. `exit` returns to lumitui.", flush=True)
                try:
                    termios.tcflush(0, termios.TCIFLUSH)  # typed meanwhile, not meant for the shell
                    shell()
                except Exception as error:  # raising here would leave the terminal suspended
                    failure = as_lumi_error(error)
                _end_without_terminal()
        except SuspendNotSupported:
            hint = f"Run `lumitui shell {self.chosen}` in another one."
            failure = InputError("lumitui cannot open a shell in this terminal.", hint)
        if failure is not None:
            show_error(self, failure)
        tui(self).tick(asked=True)

    def action_copy(self) -> None:
        """Copy the id of the run."""
        if self.chosen:
            self.app.copy_to_clipboard(self.chosen)
            self.notify(f"Copied {self.chosen}.", markup=False)


def _end_without_terminal() -> None:
    """End this process like a hang-up if its terminal is gone.

    A shell with job control receives the signal instead, and Textual would then read end-of-file
    forever.
    """
    try:
        termios.tcgetattr(sys.__stdin__ or 0)
    except termios.error:
        signal.raise_signal(signal.SIGHUP)
