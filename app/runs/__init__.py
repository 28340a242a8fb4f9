"""Runs: everything a person can do with jobs. The TUI and the CLI call only this.

What lists and refreshes need is imported here; what one action needs, that action imports.
"""

from functools import cached_property
from typing import TYPE_CHECKING

from lumitui.app.runs.launches import Launches
from lumitui.app.runs.results import Results
from lumitui.app.runs.upkeep import Upkeep

if TYPE_CHECKING:
    from lumitui.app.inquiry.inquiries import Inquiries
    from lumitui.app.runs.series import SeriesRuns
    from lumitui.app.survey.surveys import Surveys


class Runs(Launches, Results, Upkeep):
    """The headless core over history, profiles and connections. Threads may share it."""

    @cached_property
    def series(self) -> "SeriesRuns":
        """Runs that are sent together: grids, and runs on several sizes."""
        from lumitui.app.runs.series import SeriesRuns

        return SeriesRuns(self, self._locks)

    @cached_property
    def inquiries(self) -> "Inquiries":
        """What only a cluster knows of a job; asked when a person wants it."""
        from lumitui.app.inquiry.inquiries import Inquiries

        return Inquiries(lambda site: self._connections.get(site))

    @cached_property
    def surveys(self) -> "Surveys":
        """Clusters that no profile describes yet, and what their nodes say."""
        from lumitui.app.survey.surveys import Surveys

        return Surveys(self, lambda: self._connections, self._transport, self._settings)
