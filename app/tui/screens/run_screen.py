"""One run: state, log, script, proof and metrics, a pane each; wide screens combine some."""

import time
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, ClassVar, Protocol, cast

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, Horizontal
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Static, Tab, Tabs

from lumitui.app.explain import words
from lumitui.app.runs import LumiError, Run, Runs
from lumitui.app.tui.asking import show_error, tui
from lumitui.app.tui.panes.overview_pane import OverviewPane
from lumitui.app.tui.screens.marked_screen import MarkedPage
from lumitui.app.tui.screens.page import EXPLAINED_WIDTH
from lumitui.app.tui.widgets import styled
from lumitui.app.tui.widgets.choice_button import neighbour

if TYPE_CHECKING:
    from lumitui.app.tui.panes.gpus_pane import GpusPane
    from lumitui.app.tui.panes.log_pane import LogPane
    from lumitui.app.tui.panes.metrics_pane import MetricsPane

PANES = {
    "overview": "Overview", "log": "Log", "metrics": "Metrics", "proof": "Proof",
    "script": "Script", "timeline": "Timeline", "lineage": "Lineage",
    "folder": "Files", "gpus": "GPUs",
}  # fmt: skip
"""Names and titles, in the order of the tabs."""
DASHBOARD = ("overview", "metrics", "log", "proof")
"""The panes shown together in a wide terminal, two by two."""
WIDE = 160
"""Minimum columns of a wide terminal."""
BELOW = ("overview", "metrics", "log")
"""The panes in a terminal of at least `ROOM` columns and lines: two below the overview."""
ROOM = (100, 36)
BESIDE = ("log", "metrics")
"""The panes shown for the log of a run with metrics."""
_FOCUS = {"log": "log-view", "folder": "files-tree"}
"""The widget to focus in a pane that is a container."""


class Pane(Protocol):
    """A pane of the screen; its id is its name."""

    def draw(self, run: Run) -> None:
        """Show the history's current facts on `run`."""


def made(pane: str, runs: Runs, run_id: str) -> Pane:
    """Return a new pane of a run; its module is imported on first use."""
    if pane == "overview":
        return OverviewPane()
    if pane == "script":
        from lumitui.app.tui.widgets.script_view import ScriptView

        return ScriptView(id="script")
    name = {"folder": "files"}.get(pane, pane)
    module = import_module(f"lumitui.app.tui.panes.{name}_pane")
    given = {"log": (run_id,), "proof": (runs,)}.get(pane, ())
    new: Pane = getattr(module, f"{name.capitalize()}Pane")(*given)
    return new


class PaneTabs(Tabs):
    """The tabs. While they have the focus, the arrows open panes and leave it here."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("right", "screen.next_pane(1)", "Tabs", key_display="← →", id="tabs.next",
                tooltip="Go to the next tab"),
        Binding("left", "screen.next_pane(-1)", "Previous tab", show=False, id="tabs.previous",
                tooltip="Go to the previous tab"),
        Binding("down,enter", "app.focus_next", "Pane", key_display="↓", id="tabs.leave",
                tooltip="Go from the tabs to the pane"),
    ]  # fmt: skip


class RunScreen(MarkedPage):
    """A run in panes, of which the screen shows as many as fit."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("i", "pane('overview')", "Overview", show=False, id="run.overview",
                tooltip="Show the run's progress, efficiency and facts"),
        Binding("T", "pane('timeline')", "Timeline", show=False, id="run.timeline",
                tooltip="Show the run's events with their times"),
        Binding("L", "pane('lineage')", "Lineage", show=False, id="run.lineage",
                tooltip="Show its parents, its resubmissions and the other sizes of its ladder"),
        Binding("F", "pane('folder')", "Files", show=False, id="run.files",
                tooltip="List the files in the run's folder; fetch or view one"),
        Binding("h", "remedy", "Do what helps", id="run.remedy",
                tooltip="Resubmit it with the suggested fix, or find out why it failed"),
        Binding("n", "new", "New", show=False, id="page.new",
                tooltip="Create a run from a job file"),
        Binding("right_square_bracket", "next_pane(1)", "Next pane", show=False,
                id="run.next", tooltip="Go to the next pane"),
        Binding("left_square_bracket", "next_pane(-1)", "Previous pane", show=False,
                id="run.previous", tooltip="Go to the previous pane"),
    ]  # fmt: skip

    def explained(self) -> Sequence[str]:
        """Return the texts of the displayed causes."""
        from lumitui.app.runs.rulebook import explanations

        causes = [f"why/{one}" for pane in self.query(OverviewPane) for one in pane.causes]
        return list(explanations(causes, (), EXPLAINED_WIDTH))

    def __init__(self, runs: Runs, run_id: str, pane: str = "overview") -> None:
        """Show the run `run_id` at one of its panes (`why` is in the overview)."""
        super().__init__(runs)
        self._run_id, self._wanted = run_id, pane
        self._open = self._on_tabs = False
        first = _name(pane)
        self._panes: dict[str, Pane] = {first: made(first, runs, run_id)}  # the panes opened so far
        self._sought = ""  # the text to find in the log when it opens
        self._read: tuple[int, ...] = ()  # the history's stamp when the run was read

    @property
    def chosen(self) -> str:
        """The displayed run."""
        return self._run_id

    def offers(self, action: str) -> bool:
        """Return whether the footer shows a key, which also depends on the pane."""
        if action == "remedy":
            return any(pane.remedy for pane in self.query(OverviewPane))
        if action == "pane('why')" and any(pane.causes for pane in self.query(OverviewPane)):
            return False  # it is shown
        in_log = action == "pane('log')" and self.shown_panes[0] == "log"
        return action != "tag" and not in_log and super().offers(action)

    def body(self) -> ComposeResult:
        """Yield the tabs and the panes."""
        # Not TabbedContent, where a late focus event switches back to its own pane.
        with Horizontal(id="tabs-line"):
            yield PaneTabs(*(Tab(self._tab(name), id=f"tab-{name}") for name in PANES))
            keys = (self._key(f"next_pane({step})") for step in (-1, 1))
            yield Static(Content.assemble((" ".join(keys), "$accent"), " tabs"), id="tabs-keys")
        with Container(id="panes"):
            for pane in self._panes.values():
                yield _widget(pane)

    def _tab(self, name: str) -> Content:
        """Return the title of a pane, with its key if there is room for all keys."""
        if self.app.size.width < ROOM[0]:
            return Content(PANES[name])
        return Content.assemble(PANES[name], " ", (self._key(f"pane('{name}')"), "$accent"))

    def _key(self, action: str) -> str:
        """Return the key of an action."""
        bindings = (active.binding for active in self.active_bindings.values())
        keys = (self.app.get_key_display(one) for one in bindings if one.action == action)
        return next(keys, "")

    def begin(self) -> None:
        """Open the requested pane; redraw every second, for its times."""
        if not self.query(Tab):
            return  # never fully composed: the app is exiting
        self._open = True
        self.action_pane(self._wanted)
        self.set_interval(1.0, self.every_second)

    def moves(self) -> bool:
        """Return whether the run has not ended."""
        return not self._run().state.is_final

    def pass_time(self) -> None:
        """Update the ages of a run that has ended."""
        if "overview" in self.shown_panes and "overview" in self._panes:
            self._panes["overview"].draw(self._run())

    def draw(self) -> None:
        """Show the history's current state."""
        run = self._run()
        # The state comes first: a long id would push it out of a narrow bar.
        run_id = Text(styled.shorten(run.id, max(18, self.size.width // 3)), style="bold")
        self.title_text(styled.state_text(run.state), run_id, _where(run))
        self.refresh_bindings()
        for name in self.shown_panes:
            if name in self._panes:
                self._panes[name].draw(run)
        if {"log", "metrics"} <= self._panes.keys() and "metrics" in self.shown_panes:
            tail = cast("LogPane", self._panes["log"]).tail
            cast("MetricsPane", self._panes["metrics"]).take_tail(run, tail)

    def action_new(self) -> None:
        """Open New, but not from the log, where `n` is the next match of a search."""
        if not self.query("LogPane:focus-within"):
            tui(self).action_go("new", fresh=True)

    def _run(self) -> Run:
        """Return the run, read only if the history changed: with many ranks it is a megabyte."""
        stamp = self.runs.history.stamp()
        if self.seen_run is None or self._read != stamp:
            self._read, self.seen_run = stamp, self.runs.history.get(self._run_id)
        return self.seen_run

    def action_pane(self, pane: str, on_tabs: bool = False) -> None:
        """Open a pane; `why` opens the overview with the cause of the failure.

        The pane gets the focus unless it remains on the tabs.
        """
        self._wanted, self._on_tabs = pane, on_tabs
        if not self._open or not self.query(Tab):
            return  # before the first paint, which opens this pane, or after the screen has closed
        with self.prevent(Tabs.TabActivated):
            self.query_one(Tabs).active = f"tab-{_name(pane)}"
        if self._panes.keys() >= set(self.shown_panes):
            self._show()
        else:
            self.call_next(self._mount)

    @property
    def shown_panes(self) -> tuple[str, ...]:
        """The names of the panes on the screen; the first one has the focus."""
        name, (width, height) = _name(self._wanted), self.size
        if name == "log" and width >= ROOM[0] and self._has_metrics():
            return BESIDE
        if name != "overview" or (width < WIDE and (width < ROOM[0] or height < ROOM[1])):
            return (name,)
        return DASHBOARD if width >= WIDE else BELOW

    def _has_metrics(self) -> bool:
        try:
            return self._run().metrics_offset > 0
        except LumiError:
            return False  # drawing reports the error

    async def _mount(self) -> None:
        for name in self.shown_panes:
            if name not in self._panes and self.query(Tab):
                new = made(name, self.runs, self._run_id)
                widget = _widget(new)
                widget.display = False
                await self.query_one("#panes").mount(widget)
                self._panes[name] = new
        # A key may have requested another pane meanwhile, which is then mounted in turn.
        if self.query(Tab) and self._panes.keys() >= set(self.shown_panes):
            self._show()

    def on_resize(self) -> None:
        for tab in self.query(Tab):
            tab.label = self._tab((tab.id or "").removeprefix("tab-"))
        if self._open and set(self._on_screen()) != set(self.shown_panes):
            self.action_pane(self._wanted)

    def _on_screen(self) -> list[str]:
        return [name for name, pane in self._panes.items() if _widget(pane).display]

    def action_remedy(self) -> None:
        """Open the suggested resubmission; if the cause is still unknown, find it first."""
        pane = cast("OverviewPane", self._panes["overview"]) if "overview" in self._panes else None
        if pane is None or pane.remedy is None:
            self.action_pane("why")
            return
        tui(self).sends.resubmit(self._run_id, 1, pane.remedy.settings)

    def action_refresh_sites(self) -> None:
        """Poll the sites now, and read the GPUs again."""
        super().action_refresh_sites()
        if "gpus" in self._panes:
            cast("GpusPane", self._panes["gpus"]).read_again()
        self.reread()

    def action_next_pane(self, step: int) -> None:
        """Open the pane `step` places to the right."""
        pane = neighbour(list(PANES), _name(self._wanted), step)
        self.action_pane(pane, self.query_one(PaneTabs).has_focus)

    @on(OverviewPane.LineWanted)
    def _line_wanted(self, event: OverviewPane.LineWanted) -> None:
        self._sought = event.text
        self.action_pane("log")

    def on_log_pane_step_ended(self) -> None:
        """Poll the site soon, so that the state follows the log."""
        tui(self).schedule.hasten(self._run().site, time.monotonic())

    def on_log_pane_link_lost(self) -> None:
        """Show in the title bar, too, that the connection was lost, until a poll succeeds."""
        tui(self).schedule.lose(self._run().site, time.monotonic())

    @on(Tabs.TabActivated)
    def _tab_chosen(self) -> None:
        if not self.query(Tab):
            return  # the screen has closed
        # Read the active tab here: the event may name the one before a key press.
        pane = self.query_one(Tabs).active.removeprefix("tab-")
        if pane in PANES and pane != _name(self._wanted):
            self.action_pane(pane)

    def _show(self) -> None:
        shown = self.shown_panes
        for name, pane in self._panes.items():
            _widget(pane).display = name in shown
            _widget(pane).set_class(len(shown) > 1, "beside")
            _widget(pane).set_class(name != shown[0], "titled")
            if name != "log":  # its title shows whether it is followed
                _widget(pane).border_title = "" if name == shown[0] else PANES[name]  # see its tab
        self.set_class("log" in shown, "-log")
        panes = self.query_one("#panes")
        panes.sort_children(key=lambda pane: [*shown, *PANES].index(pane.id or ""))
        panes.set_class(len(shown) > 1, "dashboard")
        panes.set_class(shown == BELOW, "tall")
        panes.set_class(shown == BESIDE, "two")
        first = _widget(self._panes[shown[0]])
        if not self._on_tabs:
            (first.query_one(f"#{_FOCUS[shown[0]]}") if shown[0] in _FOCUS else first).focus()
        if self._wanted == "why":
            self._wanted = shown[0]
            self._for_run(cast("OverviewPane", first).ask_why)
        # A log with metrics is followed for them, too.
        draws = "metrics" in shown and "log" in self._panes and self.moves()
        draws = draws and ("log" in shown or self._run().has_metrics)
        if "metrics" in shown and not draws:
            self._for_run(cast("MetricsPane", self._panes["metrics"]).search_log)
        self.reread()
        if "log" in self._panes:
            log = cast("LogPane", self._panes["log"])
            # A user who opens the overview has not requested the log, so it must not prompt for a
            # login.
            follows = draws or "log" in shown
            log.follow(attended=shown[0] == "log") if follows else log.unfollow()
            if shown[0] == "log" and self._sought:
                log.seek(self._sought)
                self._sought = ""

    def _for_run(self, act: Callable[[Run], None]) -> None:
        """Call `act` with the run from the history; show the error if it is unreadable."""
        try:
            act(self._run())
        except LumiError as error:
            show_error(self, error)


def _name(pane: str) -> str:
    return pane if pane in PANES else "overview"


def _widget(pane: Pane) -> Widget:
    assert isinstance(pane, Widget)
    return pane.add_class("frame", update=False)


def _where(run: Run) -> str:
    job = f", job {run.job_id}" if run.job_id else ""
    return f"{run.site} {run.brief.partition}{job}, {words.layout_size(run.layout)}"
