"""The overview of a run: progress, efficiency, facts and, on demand, why it failed."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from rich.console import Group, RenderableType
from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.timer import Timer
from textual.widgets import Static

from lumitui.app.explain import row_words, run_facts, run_overview, words
from lumitui.app.explain.waiting import no_failure
from lumitui.app.runs import Run, attendance
from lumitui.app.tui.asking import ask, forget, tui
from lumitui.app.tui.widgets import styled
from lumitui.app.tui.widgets.scroll import Scroll
from lumitui.app.tui.widgets.steady import Steady
from lumitui.app.tui.widgets.styled import TWO_COLUMNS, labelled, plain

if TYPE_CHECKING:
    from lumitui.app.explain.actions import HelpfulResubmission
    from lumitui.app.explain.proof.binding_proof import Verdict
    from lumitui.app.runs import Diagnosis, RaisingCode, RunOverview, Runs
    from lumitui.app.tui.widgets.chart import Chart

_BAR = 24  # cells of the time limit's bar, and of the loss curve
_SETTLED = 0.15  # seconds that a table's cursor rests on a run before the run's metrics are read
_SOUGHT = 120  # maximum characters of a line to search for: longer lines may be shown shortened
_TIMES = (
    "created", "submitted", "requeued", "waits for", "after", "waiting for", "time",
    "expected start", "started", "latest end", "expected end", "ended", "last answer",
)  # fmt: skip
"""Names of facts about a run's times, in display order."""
_FILES = frozenset(
    {"global batch", "code", "snapshot", "continues from", "folder", "project", "job file", "logs",
     "note", "tags"}
)  # fmt: skip
"""Names of facts about a run's contents; all others concern where it runs."""
_SOUGHT_FACTS = frozenset(
    {"exit", "waits for", "waiting for", "expected start", "expected end", "latest end", "note"}
)
"""Names of facts about a run that a user looks for; all others are dim, like paperwork."""
_FIGURE = re.compile(r"\d[\d.,]*(?: (?:%|samples/s|[A-Za-z]+-hours))?")
"""The figure of a row, which is bold: what follows only explains it."""
_FIGURES = ("throughput", "efficiency", "loss", "billed")
_ROOMY = (32, 20)  # minimum lines to draw the loss below the facts, in one column and in two
_KEYS = {
    "fetch its results": "E", "resubmit it on a different number of nodes": "+",
    "find out why it failed": "d", "check the proof": "p", "follow its log": "l",
    "resubmit it": "R",
}  # fmt: skip
"""The keys of next steps."""
_STEP = re.compile("|".join(_KEYS), re.IGNORECASE)
_Drawn = tuple[object, ...]
_Rows = Sequence[run_facts.Row]


class OverviewPane(Scroll):
    """The overview of the last drawn run; a worker computes the content."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "open_line", "Show in the log", id="overview.line",
                tooltip="Go to the log line that shows why the run failed"),
    ]  # fmt: skip

    @dataclass
    class LineWanted(Message):
        """Open the log at the line that contains a text."""

        text: str

    def __init__(self, *, id: str = "overview", chart: bool = False) -> None:  # noqa: A002 - Textual's name
        """Show nothing yet; with `chart`, draw the loss if there is room."""
        super().__init__(id=id)
        self._draws_loss = chart
        self._chart: Chart | None = None
        """Mounted once a loss is known: the first paint does without it."""
        self._run: Run | None = None
        self._asked: _Drawn = ()
        self._timer: Timer | None = None
        self._found: RunOverview | None = None
        self._drawn: _Drawn = ()  # all that the pane shows; it is redrawn only when this changes
        self._why: RenderableType | None = None
        self._why_of = ""  # the state that `_why` explains
        self._explained = False  # whether it shows why the run failed
        self.remedy: HelpfulResubmission | None = None
        """The suggested resubmission, if the cause is shown."""
        self.causes: tuple[str, ...] = ()
        """The ids of the displayed causes."""
        self._line = ""  # the text of the log line that shows why the run failed

    def compose(self) -> ComposeResult:
        """Yield the reasons, then the facts."""
        yield Static(classes="why", markup=False)
        yield Steady(classes="facts")

    def draw(self, run: Run) -> None:
        """Show the history's current facts on `run`."""
        other = self._run is None or run.id != self._run.id
        self._run = run
        if other and not self._draws_loss:  # the list may have read it for its preview
            self._found = tui(self).runs.overviews.last
        if not self.query(".facts"):
            return  # not composed yet; the first resize draws the pane
        if other:
            self._show_why(None)
        elif self._why is not None and run.state is not self._why_of:
            self.ask_why(run, attended=False)
        self._ask(run)
        now, width = time.time(), self.size.width
        found = self._found if self._found and self._found.run.id == run.id else None
        known = (found.proof, found.figures.summary, found.comparison) if found else (None,) * 3
        told = run_overview.rows(run, now, *known, explained=self._explained)
        if found:
            told = run_overview.with_outlook(told, run, found.planned, found.advice)
        facts, plotted = run_facts.facts(run, now), self._plot(found)
        if not self._draws_loss:  # the run's title bar shows the rest
            facts = [("nodes", run.nodes_used or "") if row[0] == "size" else row for row in facts]
            facts = [row for row in facts if row[1]]
        elif plotted and width >= TWO_COLUMNS:  # next to the facts
            roomy = self.size.height >= _ROOMY[0]
            facts = [row for row in facts if roomy or row[0] not in _FILES]
            width //= 2
        drawn = (run.id, run.state, told, facts, width, found, plotted)
        if drawn != self._drawn:
            self._drawn = drawn
            shown = [row for row in told if row[0] != "loss"] if plotted else told
            self.query_one(".facts", Steady).show(page(run, found, now, width, shown, facts))

    def _plot(self, found: RunOverview | None) -> bool:
        """Draw the loss if there is room; return whether a plot shows it, here or elsewhere."""
        if not self._draws_loss:
            return self.has_class("beside")
        roomy = found is not None and self.size.height >= _ROOMY[self.size.width >= TWO_COLUMNS]
        if self._chart is None and not roomy:
            return False
        from lumitui.app.tui.widgets.chart import Chart, lines_of

        if self._chart is None:
            self._chart = Chart("loss")
            self.mount(self._chart)
        self._chart.show(lines_of([found.figures.loss], ["loss"]) if found and roomy else ())
        beside = self._chart.display and self.size.width >= TWO_COLUMNS
        self.set_class(beside, "two-columns")
        return self._chart.display

    def on_resize(self, event: events.Resize) -> None:
        if self._run is not None:
            self.draw(self._run)

    def _ask(self, run: Run) -> None:
        wanted = (run.id, run.state, run.updated, run.metrics_offset)
        if wanted == self._asked:
            return
        moved = bool(self._asked) and self._asked[0] != run.id
        self._asked = wanted
        if self._timer is not None:
            self._timer.stop()
        if moved:
            self._timer = self.set_timer(_SETTLED, self._want)
        else:
            self._want()

    def _want(self) -> None:
        if self._run is not None:
            run_id = self._run.id
            ask(self, lambda runs: runs.overviews.of(run_id), self._overview_found, key="overview")

    def _overview_found(self, found: RunOverview) -> None:
        if self._run is not None and found.run.id == self._run.id:
            self._found = found
            self.draw(self._run)

    def ask_why(self, run: Run, *, attended: bool = True) -> None:
        """Show why `run` failed; search the end of its log only if it may have failed."""
        self._why_of = run.state
        if self._run is None or run.id != self._run.id:
            self.draw(run)
        if reassurance := no_failure(run, time.time()):
            forget(self, "why")
            self._show_why(plain(f"{reassurance}\n"))
            return
        self._show_why(Text("Searching the end of the log …\n", "dim"))
        ask(self, lambda runs: _explained(runs, run.id, attended=attended),
            lambda found: self._why_found(*found), failed=lambda _: self._show_why(Text()),
            quietly=not attended, key="why")  # fmt: skip

    def _why_found(self, found: Sequence[Diagnosis], code: RaisingCode | None) -> None:
        if self._why is not None and self._run is not None:
            from lumitui.app.explain.actions import action_of

            remedy = action_of(found, self._run)
            self._show_why(causes(self._run, found, remedy, code))
            self.remedy = remedy
            self._explained = bool(found)
            self.causes = tuple(dict.fromkeys(one.id for one in found))
            self._line = line_of(found, self._run)
            self.refresh_bindings()
            self.draw(self._run)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer the log line only if one is known."""
        return action != "open_line" or bool(self._line)

    def action_open_line(self) -> None:
        self.post_message(self.LineWanted(self._line))

    def _show_why(self, content: RenderableType | None) -> None:
        if content is None and self._why is None:
            return  # the pane is already empty
        self._why, self._explained, self.remedy, self._line = content, False, None, ""
        self.causes = ()
        self.refresh_bindings()
        why = self.query_one(".why", Static)
        why.display = content is not None
        why.update(content or "")
        if content is not None:
            self.scroll_home(animate=False)


def page(
    run: Run, found: RunOverview | None, now: float, width: int, told: _Rows, facts: _Rows
) -> RenderableType:
    """Return a run's overview in `width` cells: its progress, facts and origin."""
    state = plain(run_facts.state(run, now), styled.COLOURS[run.state])
    if (share := row_words.share(run, now)) is not None:
        bar = styled.bar([(share, "━", "green"), (1 - share, "─", "dim")], _BAR)
        state.append("  ").append_text(bar)
    top: list[tuple[str, str | Text]] = [("state", state)]
    for label, text in told:
        if label == "proof" and found:
            top.append((label, verdict_line(found.proof, run.layout.world_size)))
        elif label == "loss" and found:
            from lumitui.app.tui.widgets.plot import sparkline

            curve = sparkline(found.figures.loss.values, _BAR)
            top.append((label, Text.assemble((curve, styled.SERIES[0]), " ", bold_figure(text))))
        elif label == "next":
            keyed = _STEP.sub(lambda step: f"{step[0]} ({_KEYS[step[0].lower()]})", text)
            top.append((label, plain(keyed, "bold")))
        else:
            top.append((label, bold_figure(text) if label in _FIGURES else plain(text)))
    labels = max(len(label) for label, _ in [*top, *facts])  # common to all parts in one column
    when = sorted((row for row in facts if row[0] in _TIMES), key=lambda row: _TIMES.index(row[0]))
    files = [row for row in facts if row[0] in _FILES]
    place = [row for row in facts if row not in [*when, *files]]
    quiet = ([(name, plain(text, "" if name in _SOUGHT_FACTS else "dim")) for name, text in rows]
             for rows in (place, when, files) if rows)  # fmt: skip
    result, others = labelled(top, labels), [labelled(rows, labels) for rows in quiet]
    if width < TWO_COLUMNS:
        return below(result, *others)
    return below(result, styled.side_by_side(below(*others[:-1]), others[-1]))


def bold_figure(text: str) -> Text:
    """Return the text of a row with its figure in bold."""
    line = plain(text)
    if found := _FIGURE.search(text):
        line.stylize("bold", *found.span())
    return line


def below(*parts: RenderableType) -> Group:
    """Return the parts in one column, with an empty row between them."""
    return Group(*[row for part in parts for row in (Text(), part)][1:])


def verdict_line(proof: Verdict, ranks: int) -> Text:
    """Return the verdict of a proof; if it passed, with how many of the `ranks` it covers."""
    words = f" {proof.measured:,}/{ranks:,}" if proof.kind == "proved" else f"  {proof.sentence}"
    return Text.assemble((proof.kind, styled.VERDICTS[proof.kind]), plain(words))


def line_of(diagnoses: Sequence[Diagnosis], run: Run) -> str:
    """Return the search text for the first cause's line, up to a masked secret, or ""."""
    from lumitui.app.explain.actions import log_lines

    shown = (
        line.partition("…")[0].strip() for one in diagnoses for line in log_lines([one], run)[-1:]
    )
    return next((line[:_SOUGHT] for line in shown if line), "")


def _explained(
    runs: Runs, run_id: str, *, attended: bool
) -> tuple[Sequence[Diagnosis], RaisingCode | None]:
    """Return why a run failed, and the code around the line that raised the first cause."""
    with attendance(attended):
        found = runs.why(run_id)
    return found, runs.raising_code(run_id, found[0].place) if found else None


def causes(
    run: Run,
    diagnoses: Sequence[Diagnosis],
    remedy: HelpfulResubmission | None = None,
    code: RaisingCode | None = None,
) -> RenderableType:
    """Return why a run failed: causes with their log lines, the likeliest first.

    Below the first cause are the code that raised it and the key that applies the remedy; an
    unknown cause shows the most informative lines.
    """
    if not diagnoses:
        return Text(f"{words.no_cause(run)}\n", "dim")
    parts = []
    for found in diagnoses:
        parts.append(Text.assemble(plain(found.cause, "bold red"), f"\n  {found.do}"))
        for line in found.telling or ([found.line] if found.line else []):
            parts.append(plain(f"  {line}", "dim"))
        if code and found is diagnoses[0]:
            parts.append(plain(f"  {code.path}", "cyan"))
            parts += [plain(f"  {row}", "" if row[0] == ">" else "dim") for row in code.rows]
        if found is diagnoses[0] and line_of([found], run):
            parts.append(Text("  enter: show it in the log", "bold"))
        if remedy and found is diagnoses[0]:
            parts.append(plain(f"  h: {remedy.words}", "bold"))
    return Group(*parts, Text())
