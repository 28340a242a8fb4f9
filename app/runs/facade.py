"""Runs: everything a user can do with jobs. The TUI, the CLI and notebooks call only this.

What lists and refreshes need is imported here; what one action needs, that action imports.
"""

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from lumitui.app.runs.launches import Launches
from lumitui.app.runs.results import Results
from lumitui.app.runs.upkeep import Upkeep

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lumitui.app.explain.phrases.price_words import Outlook
    from lumitui.app.history.run import Run
    from lumitui.app.launch.send.preview import Preview
    from lumitui.app.runs.scripts import Scripts
    from lumitui.app.runs.series import SeriesRuns
    from lumitui.app.runs.shown_findings import ShownFindings
    from lumitui.app.survey.profile.surveys import Surveys


class Runs(Launches, Results, Upkeep):
    """The headless core over history, profiles and connections. Threads may share it.

    `with Runs() as runs:` closes connections and history at its end. Each error that a user can
    do something about is a `LumiError`: what happened in `message`, what to try in `hint`.
    """

    @cached_property
    def series(self) -> "SeriesRuns":
        """Runs that are sent together: grids, and runs on several sizes."""
        from lumitui.app.runs.series import SeriesRuns

        return SeriesRuns(self, lambda site: self.refresh(site), self._locks)

    def send_grid(
        self, previews: "Sequence[Preview]", *, sent: "Callable[[Run], None]" = lambda run: None
    ) -> "tuple[Run, ...]":
        """Send the runs of a grid, in order, and return them; `sent` hears of each.

        Raises:
            InputError: one of them has an error; nothing is sent.
            RefusedError, LinkError, OutcomeUnknown: as `send`; the message says what was sent.
        """
        from lumitui.app.scale.series_words import sent_of, series_failure

        series = self.series.begin_grid(previews)
        outcomes = self.series.send(series.id, sent=sent)
        if failure := series_failure(series, outcomes):
            raise failure
        return tuple(sent_of(outcomes))

    @cached_property
    def scripts(self) -> "Scripts":
        """Any sbatch script, checked and fixed; their clusters can be asked."""
        from lumitui.app.runs.scripts import Scripts

        return Scripts(self.sites, lambda job, site: self.inquiries.of_script(job, site).findings)

    @cached_property
    def shown_findings(self) -> "ShownFindings":
        """What the last preview printed."""
        from lumitui.app.runs.shown_findings import ShownFindings

        return ShownFindings(self._data / "shown.json")

    def price_outlook(self, preview: "Preview") -> "Outlook":
        """Return what a job costs at most and probably, and what its account has left.

        The last comes from what its site said last; no site is asked.
        """
        from lumitui.app.explain.phrases.price_words import Outlook
        from lumitui.app.scale.forecast import forecast

        launch = preview.launch
        likely = forecast(launch, self.history, self.scaling)
        found = Outlook(launch.price)
        if likely is not None:
            found = replace(
                found, about=likely.amount, like=likely.run, other_size=likely.other_size
            )
        budget = self._budgets.of(launch.spec.site, launch.spec.account)
        if budget is None:
            return found
        return replace(found, left=budget.row.left, limit=budget.row.limit, asked=budget.at)

    @cached_property
    def surveys(self) -> "Surveys":
        """Clusters that no profile describes yet, and what their nodes say."""
        from lumitui.app.survey.profile.surveys import Surveys

        return Surveys(
            self.sites,
            self.history,
            self.drafts,
            lambda: self._connections,
            self._transport,
            self._settings,
        )
