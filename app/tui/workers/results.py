"""Causes and figures of runs."""

from textual import on, work

from lumitui.app.tui import messages
from lumitui.app.tui.workers.core import CoreApp


class ResultWorkers(CoreApp):
    """An app that finds out why a run failed, and what it measured."""

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

    @on(messages.OverviewWanted)
    def _overview_wanted(self, event: messages.OverviewWanted) -> None:
        self._overview(event)

    @work(thread=True, group="overview", exit_on_error=False)
    def _overview(self, wanted: messages.OverviewWanted) -> None:
        found = None
        try:
            found = self.runs.overviews.of(wanted.run_id)
        finally:
            wanted.reply_to.post_message(messages.OverviewFound(wanted.run_id, found))

    @on(messages.ComparisonWanted)
    def _comparison_wanted(self, event: messages.ComparisonWanted) -> None:
        self._comparison(event)

    @work(thread=True, group="comparison", exit_on_error=False)
    def _comparison(self, wanted: messages.ComparisonWanted) -> None:
        found = None
        try:
            found = self.runs.comparisons.of(wanted.run_ids)
        finally:
            wanted.reply_to.post_message(messages.ComparisonMade(found))
        changes = self.runs.comparisons.code(wanted.run_ids)
        wanted.reply_to.post_message(messages.CodeCompared(changes))

    @on(messages.GlancesWanted)
    def _glances_wanted(self, event: messages.GlancesWanted) -> None:
        self._glances(event)

    @work(thread=True, group="glances", exit_on_error=False)
    def _glances(self, wanted: messages.GlancesWanted) -> None:
        try:
            self.runs.history.glances.take(wanted.keys)
        finally:
            wanted.reply_to.post_message(messages.GlancesFound())
