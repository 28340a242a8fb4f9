"""The part of a list of runs that a screen has scrolled to, read page by page.

Only ids are read of most runs: what a run says is read when it is shown. Nothing is read again
until the history has changed.
"""

import time
from collections.abc import Sequence

from lumitui.app.history.listing.find_runs import (
    EVERYTHING,
    Filter,
    ListedRun,
    RunFinder,
    RunListing,
)
from lumitui.app.history.listing.order import NEWEST_FIRST, Order
from lumitui.app.history.listing.run_tree import (
    TreeLine,
    arranged,
    flat,
    series_heads,
    with_descendants,
)
from lumitui.app.history.listing.state_filter import STATE_GROUPS
from lumitui.app.history.run import Run
from lumitui.remote.site.states import State

PAGE = 200
"""Runs whose ids are read at once."""
ROWS_AROUND = 40
"""Runs before and after those on the screen that are read with them."""
_KEPT = 1000
"""Runs that are in memory at most, besides those on the screen."""


class RunWindow:
    """A list of runs, filtered, sorted and as trees, as far as someone has scrolled.

    What reads raises HistoryError where the file cannot be read.
    """

    def __init__(self, finder: RunFinder) -> None:
        """Show all runs, newest first; nothing is read yet."""
        self._finder = finder
        self.listing = RunListing()
        """What is listed."""
        self.lines: Sequence[TreeLine] = ()
        """What there is to show, one line for each run."""
        self.complete = False
        """Whether the list has no more runs than those in `lines`, or folded there."""
        self.total = 0
        """How many runs the list has."""
        self.counts: dict[State, int] = {}
        """How many of them are in each state."""
        self._entries: list[ListedRun] = []
        self._runs: dict[str, Run | None] = {}
        self._places: dict[str, int] = {}
        self._folded: set[str] = set()
        self._opened: set[str] = set()
        """The first runs of series that are not folded."""
        self._version: tuple[int, ...] = ()

    @property
    def is_tree(self) -> bool:
        """Whether runs are below those they resubmit: only in the list of the newest."""
        return self.listing.order == NEWEST_FIRST

    @property
    def foremost(self) -> str | None:
        """The newest run of the list that runs or waits, or else the newest; None: it is empty.

        A tree begins with its root, which may be the oldest run of all.
        """
        if not self._entries:
            return None
        going_on = self._finder.newest_in(STATE_GROUPS["running"] | STATE_GROUPS["waiting"])
        newest = max(self._entries, key=lambda entry: entry.place).id if self.is_tree else None
        return going_on if going_on in self._places else newest or self.lines[0].id

    def show(self, criteria: Filter = EVERYTHING, order: Order = NEWEST_FIRST) -> None:
        """List other runs, or in another order, from the beginning."""
        self.listing = RunListing(criteria, order)
        self._entries, self._version = [], ()
        self.refresh()

    def refresh(self) -> bool:
        """Read the list again if the history has changed, and return whether it has."""
        version = self._finder.version()
        if version == self._version:
            return False
        self.listing = RunListing(self.listing.criteria, self.listing.order, time.time())
        limit = max(PAGE, len(self._entries))
        entries = self._finder.entries(self.listing, limit, None)
        self.complete = len(entries) < limit
        self.counts = self._finder.count_states(self.listing.criteria)
        self.total = len(entries) if self.complete else sum(self.counts.values())
        self._entries, self._runs, self._version = entries, {}, version
        self._arrange()
        return True

    def more(self, limit: int = PAGE) -> bool:
        """Read on where the list was left, at most `limit` runs; return whether there were any."""
        if self.complete or not self._entries:
            return False
        entries = self._finder.entries(self.listing, limit, self._entries[-1].place)
        self.complete = len(entries) < limit
        # A run that is begun or ends meanwhile may have moved from one page to the next.
        ids = {entry.id for entry in self._entries} if entries else set()
        self._entries += [entry for entry in entries if entry.id not in ids]
        self._arrange()
        return bool(entries)

    def whole(self) -> None:
        """Read the list to its end."""
        while self.more(limit=max(PAGE, self.total)):
            pass

    def read(self, begin: int, end: int) -> bool:
        """Read what the runs of these lines say, where it is missing; return whether it was."""
        if all(line.id in self._runs for line in self.lines[max(0, begin) : end]):
            return False
        if len(self._runs) > _KEPT:
            self._runs = {}
        around = self.lines[max(0, begin - ROWS_AROUND) : end + ROWS_AROUND]
        ids = [line.id for line in around if line.id not in self._runs]
        runs = self._finder.with_ids(ids)
        self._runs |= {run: runs.get(run) for run in ids}
        return True

    def run(self, run_id: str) -> Run | None:
        """Return a run that was read; None: it was not, or it cannot be."""
        return self._runs.get(run_id)

    def place(self, run_id: str | None) -> int | None:
        """Return the number of the line of a run; None: it is not shown."""
        return None if run_id is None else self._places.get(run_id)

    def stood_for(self, run_id: str) -> tuple[str, ...]:
        """Return the runs that the line of a run is about: of a folded series, all of it."""
        at = self.place(run_id)
        if at is None or not (self.lines[at].folded and self.lines[at].summary):
            return (run_id,)
        return with_descendants(self._entries, run_id)

    def fold(self, run_id: str, *, folded: bool) -> None:
        """Hide or show what descends from a run, or the series that it stands for."""
        (self._folded.add if folded else self._folded.discard)(run_id)
        (self._opened.discard if folded else self._opened.add)(run_id)
        self._arrange()

    def _arrange(self) -> None:
        """Lay the list out; series are folded until someone opens them."""
        if not self.is_tree:
            self.lines = flat(self._entries)
            self._places = {line.id: at for at, line in enumerate(self.lines)}
            return
        heads = series_heads(self._entries)
        self.lines = arranged(self._entries, self._folded | (heads.keys() - self._opened))
        self._places = {line.id: at for at, line in enumerate(self.lines)}
        for head, members in heads.items():  # where a hidden one is looked for
            if head in self._places:
                for member in members:
                    self._places.setdefault(member.id, self._places[head])
