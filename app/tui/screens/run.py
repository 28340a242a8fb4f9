"""One run: its state, log, script, proof and metrics."""

import time
from collections.abc import Sequence
from typing import ClassVar

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widgets import ContentSwitcher, Static, Tab, Tabs

from lumitui.app.explain.diagnose import Diagnosis
from lumitui.app.explain.waiting import no_failure
from lumitui.app.history.run import Run
from lumitui.app.runs import Runs
from lumitui.app.tui import messages
from lumitui.app.tui.screens.page import RunPage, buttons
from lumitui.app.tui.widgets import run_details, wording
from lumitui.app.tui.widgets.chart import Chart
from lumitui.app.tui.widgets.log_view import LogView
from lumitui.app.tui.widgets.script_view import ScriptView, Scroll
from lumitui.app.watch.follow_log import LogBegan, LogEnded, LogGrew, LogWaits
from lumitui.remote.errors import LumiError

PANES = {"state": "State", "log": "Log", "script": "Script", "proof": "Proof", "metrics": "Metrics"}


class RunScreen(RunPage):
    """A run in five panes. The log is followed while its pane is open, and only then."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("i", "pane('state')", "State", show=False, id="run.state",
                tooltip="What is known of it"),
        Binding("tab,right_square_bracket", "next_pane(1)", "Next pane", show=False,
                id="run.next", tooltip="The next pane"),
        Binding("shift+tab,left_square_bracket", "next_pane(-1)", "Previous pane", show=False,
                id="run.previous", tooltip="The pane before"),
    ]  # fmt: skip

    def __init__(self, runs: Runs, run_id: str, pane: str = "state") -> None:
        """Show the run `run_id`, at one of its panes (`why` is in the first)."""
        super().__init__(runs)
        self._run_id, self._first = run_id, pane
        self._number = 0
        self._attempt: int | None = None
        self._offset = 0
        self._script_shown = False
        self._points_at = -1
        """Bytes of metrics.jsonl that the pane shows."""
        self._open = False
        self._ended = ""
        self._diagnoses: Sequence[Diagnosis] | None = None
        self._looking = False
        """Whether the log's end is being searched for a cause."""

    @property
    def chosen(self) -> str:
        """The run shown."""
        return self._run_id

    def body(self) -> ComposeResult:
        """One pane on the screen at a time."""
        # Not TabbedContent: there, a focus that arrives late takes the pane back to its own.
        yield Tabs(*(Tab(words, id=f"tab-{name}") for name, words in PANES.items()))
        with ContentSwitcher(initial="state"):
            with Scroll(id="state"):
                yield Static(id="why", markup=False)
                yield Static(id="facts", markup=False)
            with Vertical(id="log"):
                yield LogView(id="log-view")
                yield Static(id="log-line", markup=False)
            yield ScriptView(id="script")
            with Scroll(id="proof"):
                yield Static(id="verdict", markup=False)
            with Scroll(id="metrics"):
                yield Static(id="series", markup=False)
                yield Chart(id="loss")
                yield Static(id="log-series", markup=False)
        yield buttons(
            ("Log", "pane('log')"),
            ("Why", "pane('why')"),
            ("Resubmit x2", "resubmit(2)"),
            ("Cancel", "cancel"),
            ("Back", "back"),
        )

    def begin(self) -> None:
        """Open the pane that was asked for; figures that depend on the time follow it."""
        if not self.query(Tab):
            return  # never composed to the end: the app is being left
        self._open = True
        self.action_pane(self._first)
        self.set_interval(1.0, self.reread)

    def draw(self) -> None:
        """Show what history says now."""
        run = self.runs.history.get(self._run_id)
        # The state first: a long id would push it out of a narrow bar.
        name = Text(wording.shorten(run.id, max(18, self.size.width // 3)), style="bold")
        self.title_text(wording.state_text(run.state), name, self._place(run))
        pane = self._pane
        if pane == "state":
            verdict = self.runs.proof(run)
            lines = run_details.facts_of(
                run, self.runs.history.lineage(run.id), verdict, time.time()
            )
            self.query_one("#facts", Static).update(lines)
            if self.query_one("#why").display:
                self._draw_why(run)
        elif pane == "proof":
            self.query_one("#verdict", Static).update(run_details.verdict(self.runs.proof(run)))
        elif pane == "metrics" and run.metrics_offset != self._points_at:
            self._work_out(run, with_log=False)
        elif pane == "script" and not self._script_shown:
            self._script_shown = True
            self.query_one(ScriptView).show(run.command, run.script)

    def _place(self, run: Run) -> str:
        job = f", job {run.job_id}" if run.job_id else ""
        return f"{run.site} {run.spec.partition}{job}, {wording.size_of(run.layout)}"

    def action_pane(self, pane: str) -> None:
        """Open a pane; `why` finds out and tells in the first one."""
        self._first = pane
        if not self._open:
            return  # a key was faster than the first paint, which opens this pane then
        if pane == "why":
            self._ask_why()
            pane = "state"
        with self.prevent(Tabs.TabActivated):
            self.query_one(Tabs).active = f"tab-{pane}"
        self._show(pane)

    def action_next_pane(self, step: int) -> None:
        """Open the pane beside."""
        names = list(PANES)
        at = names.index(self._pane)
        self.action_pane(names[(at + step) % len(names)])

    @property
    def _pane(self) -> str:
        return self.query_one(ContentSwitcher).current or "state"

    @on(Tabs.TabActivated)
    def _tab_chosen(self) -> None:
        # What is active now: the event may tell of what was active before a key.
        pane = self.query_one(Tabs).active.removeprefix("tab-")
        if pane in PANES and pane != self._pane:
            self._show(pane)

    def _show(self, pane: str) -> None:
        before = self._pane
        self.query_one(ContentSwitcher).current = pane
        self.query_one("#log-view" if pane == "log" else f"#{pane}").focus()
        if pane == "metrics":
            self._work_out(self.runs.history.get(self._run_id), with_log=True)
        self.reread()
        if pane == "log" and (before != "log" or not self._number or self._ended):
            self._follow()
        elif pane != "log":
            self.post_message(messages.UnfollowWanted())

    # -- the log

    def _follow(self) -> None:
        self._number += 1
        self._ended = ""
        wanted = messages.FollowWanted(
            self, self._number, self._run_id, self._attempt, self._offset
        )
        self.post_message(wanted)

    @on(messages.LogNews)
    def _log_news(self, news: messages.LogNews) -> None:
        if news.number != self._number:
            return
        view = self.query_one(LogView)
        match news.event:
            case LogBegan(attempt, start):
                self._attempt, self._offset, self._ended = attempt, start, ""
                view.clear()
                if start:
                    view.note(f"{start:,} bytes before this are on the site")
            case LogGrew(data, end):
                self._offset, self._ended = end, ""
                view.feed(data)
            case LogWaits(words):
                self._ended = f"waiting: {words}"
                self._log_line()
            case LogEnded(words):
                self._ended = words
                self._log_line()

    @on(LogView.Changed)
    def _log_line(self) -> None:
        view = self.query_one(LogView)
        attempt = f"attempt {self._attempt or 1}, {wording.count(view.total, 'line')}"
        paused = f"paused, {view.unseen:,} new below, f follows" if not view.follow else "following"
        words = self._ended or paused
        wrap = "wrapped" if view.wrap else "not wrapped"
        self.query_one("#log-line", Static).update(Text(f"{words}; {attempt}; {wrap} (w)"))

    # -- metrics

    def _work_out(self, run: Run, *, with_log: bool) -> None:
        # In a worker: 100,000 steps take about a second to read.
        self._points_at = run.metrics_offset
        searched = with_log and bool(run.spec.metrics)
        if searched:
            self.query_one("#log-series", Static).update("Searching the end of the log …")
        self.post_message(messages.FiguresWanted(self, run.id, run.metrics_offset, searched))

    @on(messages.FiguresFound)
    def _figures_found(self, event: messages.FiguresFound) -> None:
        if event.offset == self._points_at:
            self.query_one("#series", Static).update(run_details.figures(event.figures))
            chart = self.query_one("#loss", Chart)
            chart.display = len(event.figures.loss.values) > 1
            chart.show(event.figures.loss)

    @on(messages.LogFiguresFound)
    def _log_figures_found(self, event: messages.LogFiguresFound) -> None:
        self.query_one("#log-series", Static).update(run_details.log_figures(event.found))

    # -- why

    def _ask_why(self) -> None:
        self.query_one("#why").display = True
        self._diagnoses, self._looking = None, False
        try:
            run = self.runs.history.get(self._run_id)
        except LumiError as error:
            self.post_message(messages.Failed(error))
            return
        if not no_failure(run, time.time()):
            self._looking = True
            self.post_message(messages.WhyWanted(self, self._run_id))

    def _draw_why(self, run: Run) -> None:
        words = run_details.why(run, self._diagnoses, time.time(), looking=self._looking)
        self.query_one("#why", Static).update(words)

    @on(messages.WhyFound)
    def _why_found(self, event: messages.WhyFound) -> None:
        self._diagnoses, self._looking = event.diagnoses, False
        self.reread()
