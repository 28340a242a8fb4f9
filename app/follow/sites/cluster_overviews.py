"""Site overviews (nodes, queue, reservations, budget), queried on the user's request."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from lumitui.app.history.history import History
from lumitui.remote.connect import Connection
from lumitui.remote.scheduler.cluster_overview import ClusterOverview
from lumitui.remote.scheduler.job_step import GpuReading
from lumitui.remote.site.errors import InputError
from lumitui.remote.site.sites import Sites
from lumitui.remote.site.states import State
from lumitui.remote.ssh.prompts import attendance
from lumitui.remote.survey.meter_rows import BudgetRow, budget_rows

Keep = Callable[[str, tuple[BudgetRow, ...], float], None]
"""Stores the remaining budgets of a site's accounts at a given time."""
FRESH_SECONDS = 60.0
"""Seconds for which a displayed answer counts as fresh."""


@dataclass(frozen=True)
class Answered:
    """An overview with the time of the answer."""

    overview: ClusterOverview
    at: float
    """Epoch seconds."""


@dataclass(frozen=True)
class RunGpus:
    """The GPUs of a run's job at one moment."""

    gpus: tuple[GpuReading, ...]
    idle_watts: float
    """Below it a GPU is idle."""
    at: float
    """Epoch seconds."""


class Clusters:
    """The last overview of each site. Thread-safe."""

    def __init__(
        self,
        history: History,
        sites: Sites,
        connection: Callable[[str], Connection],
        keep: Keep = lambda site, rows, at: None,
    ) -> None:
        """Query through `connection` (site's name to connection); sends nothing yet.

        `keep` receives the accounts' remaining budgets, if the profile defines how to read them.
        """
        self._keep = keep
        self._history, self._sites, self._connection = history, sites, connection
        self._last: dict[str, Answered] = {}
        self._lock = threading.Lock()

    def last(self, site_name: str) -> Answered | None:
        """Return the last overview of a site without querying it."""
        return self._last.get(site_name)

    def is_due(self, site_name: str, now: float) -> bool:
        """Return whether the last overview of a site is too old to show."""
        last = self._last.get(site_name)
        return last is None or not 0 <= now - last.at < FRESH_SECONDS

    def ask(self, site_name: str, *, attended: bool = True) -> Answered:
        """Query a site in one request; a part that is unavailable has a sentence instead.

        Raises:
            InputError: no such site.
            LinkError: the site cannot be reached; unless `attended`, no login prompts.
        """
        site = self._sites.load(site_name)
        connection = self._connection(site_name)
        with attendance(attended):
            overview = connection.scheduler.overview(site.commands.get("balance", ""))
        answered = Answered(overview, time.time())
        with self._lock:
            self._last[site_name] = answered
        if site.budget is not None:
            rows = budget_rows("\n".join(overview.budget), site.budget)
            self._keep(site_name, rows, answered.at)
        return answered

    def gpus(self, run_id: str) -> RunGpus:
        """Return the current GPU use of a running job; starts one step in the job.

        Raises:
            InputError: no such run, it is not running, or the profile has no `gpu_readings`.
            RefusedError: the GPUs cannot be read.
        """
        run = self._history.get(run_id)
        if run.state is not State.RUNNING or run.job_id is None:
            raise InputError(
                f"{run.id} is not running.", "lumitui can read its GPUs only while it runs."
            )
        readings = self._sites.load(run.site).gpu_readings
        if readings is None:
            raise InputError(
                f"The profile of {run.site} does not define how to read GPUs.",
                "Add `gpu_readings:` to your own profile; `lumitui schema site` shows it.",
            )
        with attendance(False):
            scheduler = self._connection(run.site).scheduler
            gpus = scheduler.gpus(run.job_id, run.layout.nodes, readings)
        return RunGpus(gpus, readings.idle_watts, time.time())

    def sites(self) -> list[str]:
        """Return the sites to query: those with runs, latest first, else the user's own profiles.

        At the site of a bundled profile the user may have no account.
        """
        used = dict.fromkeys(run.site for run in self._history.page(limit=200))
        names = self._sites.names()
        return [name for name in used if name in names] or self._sites.own() or self._here(names)

    def _here(self, names: list[str]) -> list[str]:
        """Return the sites that need no login, or all `names` if there are none."""
        return [name for name in names if self._needs_none(name)] or names

    def _needs_none(self, name: str) -> bool:
        try:
            return self._sites.load(name).scheduler == "process"
        except InputError:
            return False  # the Sites screen reports its error
