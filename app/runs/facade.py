"""Runs: everything that users do with jobs. The TUI, the CLI and notebooks call only this.

This module imports what lists and refreshes need; each other action imports what it needs.
"""

from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from lumitui.app.runs.launches import Launches

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from lumitui.app.explain.run_phrases import Outlook
    from lumitui.app.follow.colleague import ColleagueRuns
    from lumitui.app.history.run import Run
    from lumitui.app.launch.send.preview import Preview
    from lumitui.app.runs.scripts import Scripts
    from lumitui.app.runs.series import SeriesRuns
    from lumitui.app.runs.shown_findings import ShownFindings
    from lumitui.app.scale.resubmission import CodeNews, Resubmission
    from lumitui.app.scale.scaling.study import Scaling
    from lumitui.app.survey.profile.surveys import Surveys


class Runs(Launches):
    """The headless core over history, profiles and connections. Threads may share it.

    `with Runs() as runs:` closes connections and history at its end. Each error that a user can fix
    is a `LumiError`: `message` says what happened, and `hint` what to try.
    """

    @cached_property
    def series(self) -> "SeriesRuns":
        """Runs that are sent together: grids, and runs on several sizes."""
        from lumitui.app.runs.series import SeriesRuns

        return SeriesRuns(self, self._locks)

    def send_grid(
        self, previews: "Sequence[Preview]", *, sent: "Callable[[Run], None]" = lambda run: None
    ) -> "tuple[Run, ...]":
        """Send the runs of a grid, in order, and return them; `sent` is called for each.

        Raises:
            InputError: one of them has an error; nothing is sent.
            RefusedError, LinkError, OutcomeUnknown: as for `send`; the message says what was sent.
        """
        from lumitui.app.scale.series_words import sent_of, series_failure

        series = self.series.begin_grid(previews)
        outcomes = self.series.send(series.id, sent=sent)
        if failure := series_failure(series, outcomes):
            raise failure
        return tuple(sent_of(outcomes))

    @cached_property
    def scripts(self) -> "Scripts":
        """Checks and fixes of any sbatch script, optionally with queries of its cluster."""
        from lumitui.app.runs.scripts import Scripts

        return Scripts(self.sites, lambda job, site: self.inquiries.of_script(job, site).findings)

    @cached_property
    def shown_findings(self) -> "ShownFindings":
        """The findings that the last preview printed."""
        from lumitui.app.runs.shown_findings import ShownFindings

        return ShownFindings(self._data / "shown.json")

    @contextmanager
    def of_colleague(
        self, user: str, site_name: str, *, account: str = "", run_id: str = ""
    ) -> "Iterator[tuple[Runs, ColleagueRuns]]":
        """Yield a colleague's runs at a site, as far as their folders may be read; change nothing.

        The runs come with their own `Runs`, whose history is temporary: its methods that read
        (`overviews`, `why`, `figures`, `read_log`) work for them. With `run_id`, read that run with
        all of its metrics; without it, read the newest runs. Without `account`, this searches the
        projects of your own runs there, else all of yours.

        Raises:
            InputError: there is no such site or run, or it may not be read.
            LinkError: the site cannot be reached.
        """
        from tempfile import TemporaryDirectory

        from lumitui.app.follow.colleague import read_colleague

        site, connection = self.sites.load(site_name), self._watcher.connection(site_name)
        own = sorted({run.brief.account for run in self.history.page(limit=1000, site=site_name)})
        accounts = [account] if account else [name for name in own if name]
        with TemporaryDirectory(prefix="lumitui-") as folder:
            settings = replace(self._settings, data=Path(folder))
            theirs = Runs(settings, connect=lambda site, ask: connection)
            try:
                found = read_colleague(
                    connection, site, user, accounts, theirs.history, run_id=run_id
                )
                yield theirs, found
            finally:
                theirs.history.close()  # the connection stays the caller's

    def price_outlook(self, preview: "Preview") -> "Outlook":
        """Return a job's maximum and probable price, and its account's last known budget.

        Queries no site.
        """
        from lumitui.app.explain.run_phrases import Outlook
        from lumitui.app.explain.words import price
        from lumitui.app.scale.forecast import forecast
        from lumitui.app.scale.scaling.scaling_words import middle

        launch = preview.launch
        likely = forecast(launch, self.history, self.scaling)
        outlook = Outlook(launch.price)
        if likely is not None:
            outlook = replace(
                outlook,
                about=middle(likely.amount, price),
                like=likely.run if likely.runs == 1 else f"its last {likely.runs} runs",
                other_size=likely.other_size,
            )
        budget = self._budgets.of(launch.spec.site, launch.spec.account)
        if budget is None:
            return outlook
        return replace(outlook, left=budget.row.left, limit=budget.row.limit, asked=budget.at)

    def resubmission_study(self, plans: "Sequence[Resubmission]", news: "CodeNews") -> "Scaling":
        """Return the speed and the price of a run on the sizes of `plans`. Queries no site.

        Raises:
            InputError: as for `Scalings.of`.
        """
        from lumitui.app.scale.scaling.studies import ScalingQuestion

        plan, request = plans[0].plan, plans[0].plan.request
        question = ScalingQuestion(
            tuple(one.plan.launch.layout.nodes for one in plans),
            settings=request.settings,
            as_sent=True,
            other_code=request.code == "current" and news.differs,
            resumes=plan.start == "checkpoint",
        )
        return self.scaling.of(plan.parent.id, question)

    def resubmission_outlook(self, planned: "Resubmission", news: "CodeNews") -> "Outlook":
        """Return a resubmission's maximum and probable price. Queries no site."""
        from lumitui.app.explain.run_phrases import Outlook
        from lumitui.app.scale.scaling.rungs import outlook_of
        from lumitui.remote.site.errors import LumiError

        parent, launch = planned.plan.parent, planned.plan.launch
        try:
            return outlook_of(self.resubmission_study([planned], news), parent, launch)
        except LumiError:
            return Outlook(launch.price)

    @cached_property
    def surveys(self) -> "Surveys":
        """Surveys of clusters without a profile, and measurements of nodes."""
        from lumitui.app.survey.profile.surveys import Surveys

        return Surveys(
            self.sites,
            self.history,
            self.drafts,
            lambda: self._connections,
            self._transport,
            self._settings,
        )
