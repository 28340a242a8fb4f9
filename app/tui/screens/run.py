"""One run: its state, log, script, proof and metrics, a pane each."""

from collections.abc import Callable
from typing import ClassVar, Protocol

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widget import Widget
from textual.widgets import ContentSwitcher, Tab, Tabs

from lumitui.app.explain import words
from lumitui.app.history.run import Run
from lumitui.app.runs import Runs
from lumitui.app.tui import messages
from lumitui.app.tui.panes.files import FilesPane
from lumitui.app.tui.panes.gpus import GpusPane
from lumitui.app.tui.panes.lineage import LineagePane
from lumitui.app.tui.panes.log import LogPane
from lumitui.app.tui.panes.metrics import MetricsPane
from lumitui.app.tui.panes.overview import OverviewPane
from lumitui.app.tui.panes.proof import ProofPane
from lumitui.app.tui.panes.script import ScriptPane
from lumitui.app.tui.panes.timeline import TimelinePane
from lumitui.app.tui.screens.page import RunPage
from lumitui.app.tui.widgets import styled
from lumitui.app.tui.widgets.bars import buttons
from lumitui.remote.errors import LumiError

PANES = {
    "overview": "Overview", "log": "Log", "metrics": "Metrics", "proof": "Proof",
    "script": "Script", "timeline": "Timeline", "lineage": "Lineage",
    "folder": "Files", "gpus": "GPUs",
}  # fmt: skip
"""Names and titles, in the order of the tabs."""
_FOCUS = {"log": "log-view", "folder": "files-table"}
"""What has the keys of a pane that is a container."""


class Pane(Protocol):
    """A pane of the screen."""

    def draw(self, run: Run) -> None:
        """Show what history says about `run` now."""


class RunScreen(RunPage):
    """A run in panes, one on the screen at a time."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("i", "pane('overview')", "Overview", show=False, id="run.overview",
                tooltip="Show how far the run is, how well it does, and its facts"),
        Binding("t", "pane('timeline')", "Timeline", show=False, id="run.timeline",
                tooltip="Show what happened to the run, and when"),
        Binding("L", "pane('lineage')", "Lineage", show=False, id="run.lineage",
                tooltip="Show the runs it was made from and those made from it"),
        Binding("F", "pane('folder')", "Files", show=False, id="run.files",
                tooltip="List the files of the run's folder; fetch or view one"),
        Binding("right_square_bracket", "next_pane(1)", "Next pane", show=False,
                id="run.next", tooltip="Go to the next pane"),
        Binding("left_square_bracket", "next_pane(-1)", "Previous pane", show=False,
                id="run.previous", tooltip="Go to the previous pane"),
    ]  # fmt: skip

    def __init__(self, runs: Runs, run_id: str, pane: str = "overview") -> None:
        """Show the run `run_id`, at one of its panes (`why` is in the first)."""
        super().__init__(runs)
        self._run_id, self._first = run_id, pane
        self._open = False
        self._overview, self._log, self._metrics = OverviewPane(), LogPane(run_id), MetricsPane()
        self._gpus = GpusPane()
        self._panes: dict[str, Pane] = {
            "overview": self._overview, "log": self._log, "metrics": self._metrics,
            "proof": ProofPane(runs), "script": ScriptPane(), "timeline": TimelinePane(),
            "lineage": LineagePane(), "folder": FilesPane(), "gpus": self._gpus,
        }  # fmt: skip

    @property
    def chosen(self) -> str:
        """The run shown."""
        return self._run_id

    def body(self) -> ComposeResult:
        """Yield the tabs, the panes and the buttons."""
        # Not TabbedContent: there, a focus that arrives late takes the pane back to its own.
        yield Tabs(*(Tab(words, id=f"tab-{name}") for name, words in PANES.items()))
        with ContentSwitcher(initial="overview"):
            yield from (pane for pane in self._panes.values() if isinstance(pane, Widget))
        yield buttons(
            ("Log", "pane('log')"),
            ("Why", "pane('why')"),
            ("Resubmit x2", "resubmit(2)"),
            ("Cancel", "cancel"),
            ("Back", "back"),
        )

    def begin(self) -> None:
        """Open the pane that was asked for; draw it again every second, for its times."""
        if not self.query(Tab):
            return  # never composed to the end: the app is being left
        self._open = True
        self.action_pane(self._first)
        self.set_interval(1.0, self.every_second)

    def moves(self) -> bool:
        """Return whether the run still goes on."""
        return not self.runs.history.get(self._run_id).state.is_final

    def draw(self) -> None:
        """Show what history says now."""
        run = self.runs.history.get(self._run_id)
        # The state first: a long id would push it out of a narrow bar.
        name = Text(styled.shorten(run.id, max(18, self.size.width // 3)), style="bold")
        self.title_text(styled.state_text(run.state), name, _where(run))
        self._panes[self._pane].draw(run)

    def action_pane(self, pane: str) -> None:
        """Open a pane; `why` opens the first one with why the run failed."""
        self._first = pane
        if not self._open:
            return  # a key was faster than the first paint, which opens this pane then
        if pane == "why":
            self._for_run(self._overview.ask_why)
            pane = "overview"
        with self.prevent(Tabs.TabActivated):
            self.query_one(Tabs).active = f"tab-{pane}"
        self._show(pane)

    def action_refresh_sites(self) -> None:
        """Poll the sites now, and read the GPUs again."""
        super().action_refresh_sites()
        self._gpus.read_again()
        self.reread()

    def action_next_pane(self, step: int) -> None:
        """Open the pane `step` places to the right."""
        names = list(PANES)
        at = names.index(self._pane)
        self.action_pane(names[(at + step) % len(names)])

    @property
    def _pane(self) -> str:
        return self.query_one(ContentSwitcher).current or "overview"

    @on(Tabs.TabActivated)
    def _tab_chosen(self) -> None:
        # Read what is active now: the event may name what was active before a key.
        pane = self.query_one(Tabs).active.removeprefix("tab-")
        if pane in PANES and pane != self._pane:
            self._show(pane)

    def _show(self, pane: str) -> None:
        self.query_one(ContentSwitcher).current = pane
        self.query_one(f"#{_FOCUS.get(pane, pane)}").focus()
        if pane == "metrics":
            self._for_run(self._metrics.search_log)
        self.reread()
        if pane == "log":
            self._log.follow()
        else:
            self._log.unfollow()

    def _for_run(self, act: Callable[[Run], None]) -> None:
        """Do something with the run as history has it; show the error if it cannot be read."""
        try:
            act(self.runs.history.get(self._run_id))
        except LumiError as error:
            self.post_message(messages.Failed(error))


def _where(run: Run) -> str:
    job = f", job {run.job_id}" if run.job_id else ""
    return f"{run.site} {run.spec.partition}{job}, {words.layout_size(run.layout)}"
