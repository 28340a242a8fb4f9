"""The part of a list of runs that a screen has scrolled to, read page by page, and as trees.

Of most runs only the ids are read; a run is read when it is shown, and again only if the history
has changed. In a tree, a family takes the place of its newest run, root first. The runs of a grid,
or of one run at several sizes, are also a family, headed by the first that was sent.
"""

import time
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from lumitui.app.history.listing.find_runs import (
    EVERYTHING,
    NEWEST_FIRST,
    Filter,
    ListedRun,
    Order,
    RunFinder,
    RunListing,
)
from lumitui.app.history.listing.state_filter import STATE_GROUPS, WENT_WRONG
from lumitui.app.history.run import UNFINISHED, Run
from lumitui.remote.site.states import State

_DEEPEST = 4
"""Maximum number of indented levels: a chain of resubmissions may have hundreds."""


class TreeLine(NamedTuple):
    """A run in the tree."""

    id: str
    parent: str | None = None
    """Its parent in the tree; None if it is a root here."""
    guide: str = ""
    """Its branch from its parent: `│└`; `┌` for the first run of a series."""
    children: int = 0
    """Number of its descendants in the list."""
    folded: bool = False
    """Whether those are hidden."""
    summary: str = ""
    """For the first run of a series: the number of its runs in each state."""
    members: tuple[str, ...] = ()
    """The runs that the line of a folded series stands for; empty for any other line."""


def flat(entries: Sequence[ListedRun]) -> list[TreeLine]:
    """Return one line per run, without a tree."""
    return [TreeLine(entry.id) for entry in entries]


def arranged(entries: Sequence[ListedRun], folded: Collection[str] = ()) -> list[TreeLine]:
    """Return the runs as trees, without the descendants of runs in `folded`."""
    parents = {entry.id: entry.parent for entry in entries}
    below: dict[str, list[str]] = {}
    heads = series_heads(entries)
    for head, members in heads.items():
        parents |= dict.fromkeys((member.id for member in members[1:]), head)
        below[head] = [member.id for member in members[1:]]
    in_series = {run for members in below.values() for run in members}
    for run, parent in parents.items():
        if parent is not None and parent in parents and run not in in_series:
            below.setdefault(parent, []).append(run)
    if not below:
        return flat(entries)
    lines: list[TreeLine] = []
    in_lines: set[str] = set()
    states = {entry.id: entry.state for entry in entries}
    for entry in entries:
        if entry.id not in in_lines:
            family = _family(_root(entry.id, parents), below)
            in_lines.update(line.id for line in family)
            family = [
                _summed_up(line, family[at + 1 :], heads, states) if line.id in heads else line
                for at, line in enumerate(family)
            ]
            lines += _without(family, folded)
    return lines


def series_heads(entries: Sequence[ListedRun]) -> dict[str, list[ListedRun]]:
    """Return the runs of each series in the order in which they were sent, by the first's id.

    One of which the list has a single run is none.
    """
    by_series: dict[str, list[ListedRun]] = {}
    for entry in reversed(entries):
        if entry.series is not None:
            by_series.setdefault(entry.series, []).append(entry)
    return {members[0].id: members for members in by_series.values() if len(members) > 1}


def _summed_up(
    line: TreeLine,
    after: Sequence[TreeLine],
    heads: Mapping[str, Sequence[ListedRun]],
    states: Mapping[str, str],
) -> TreeLine:
    """Return the head of a series, with its own data and its descendants, each once."""
    members = {member.id: member for member in heads[line.id]}
    last = {member.member: member.state for member in members.values()}
    below = [one.id for one in after[: line.children]]
    others = [states[run] for run in below if run not in members]
    counts = Counter([*last.values(), *others]).most_common()
    # A narrow column cuts the end: what failed must be read.
    counts.sort(key=lambda item: item[0] not in WENT_WRONG)
    if again := len(members) - len(last):
        counts.append(("sent again", again))
    summary = ", ".join(f"{number} {state}" for state, number in counts)
    summary += f" ({len(others)} resubmitted)" * bool(others)
    return line._replace(summary=summary, members=(line.id, *below))


def _root(run: str, parents: dict[str, str | None]) -> str:
    """Return the topmost ancestor in the list; a circle, which no history should have, ends."""
    seen = {run}
    while (parent := parents[run]) is not None and parent in parents and parent not in seen:
        seen.add(parent)
        run = parent
    return run


def _family(root: str, below: dict[str, list[str]]) -> list[TreeLine]:
    """Return the root and all its descendants, each after its parent."""
    lines: list[TreeLine] = []
    seen: set[str] = set()
    # The run, its parent, what is before its own mark, and that mark.
    waiting: list[tuple[str, str | None, str, str]] = [(root, None, "", "")]
    while waiting:
        run, parent, before, mark = waiting.pop()
        if run in seen:
            continue
        seen.add(run)
        lines.append(TreeLine(run, parent, before[:_DEEPEST] + mark))
        under = before + {"": "", "├": "│", "└": " "}[mark]
        children = below.get(run, [])
        for at, child in reversed(list(enumerate(children))):
            waiting.append((child, run, under, "└" if at == len(children) - 1 else "├"))
    return _counted(lines)


def _counted(lines: list[TreeLine]) -> list[TreeLine]:
    """Return the lines with how many descend from each: those follow it."""
    count = {line.id: 0 for line in lines}
    for line in reversed(lines):
        if line.parent is not None:
            count[line.parent] += 1 + count[line.id]
    return [line._replace(children=count[line.id]) for line in lines]


def _without(family: list[TreeLine], folded: Collection[str]) -> list[TreeLine]:
    rows, hidden = [], 0
    for line in family:
        if hidden:
            hidden -= 1
            continue
        if line.children and line.id in folded:
            line, hidden = line._replace(folded=True), line.children
        elif line.summary:  # the first of siblings, which have none above them
            line = line._replace(guide=line.guide + "┌", members=())
        rows.append(line)
    return rows


def _needed(lines: Sequence[TreeLine]) -> list[str]:
    """Return the runs whose values these lines show."""
    return [run for line in lines for run in line.members or (line.id,)]


PAGE = 200
"""Number of ids to read at a time."""
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
        """The selection and order."""
        self.lines: Sequence[TreeLine] = ()
        """The lines of the list, one for each run."""
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
        """The newest unfinished run of the list, or else the newest; None if it is empty.

        A tree begins with its root, which may be the oldest run of all.
        """
        if not self._entries:
            return None
        going_on = self._finder.newest_in(STATE_GROUPS["running"] | STATE_GROUPS["waiting"])
        newest = (self._entries if self.is_tree else self.lines)[0].id
        return going_on if going_on in self._places else newest

    def show(self, criteria: Filter = EVERYTHING, order: Order = NEWEST_FIRST) -> None:
        """Change the selection or the order, and start again."""
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
        """Read the runs of these lines that are missing; return whether there were any."""
        if all(run in self._runs for run in _needed(self.lines[max(0, begin) : end])):
            return False
        if len(self._runs) > _KEPT:
            self._runs = {}
        around = self.lines[max(0, begin - ROWS_AROUND) : end + ROWS_AROUND]
        ids = [run for run in _needed(around) if run not in self._runs]
        runs = self._finder.with_ids(ids)
        self._runs |= {run: runs.get(run) for run in ids}
        return True

    def run(self, run_id: str) -> Run | None:
        """Return a run that was read; None if it was not, or is unreadable."""
        return self._runs.get(run_id)

    def place(self, run_id: str | None) -> int | None:
        """Return the line number of a run; None if it is not shown."""
        return None if run_id is None else self._places.get(run_id)

    def stood_for(self, run_id: str) -> tuple[str, ...]:
        """Return the runs that the line of a run is about: of a folded series, all of it."""
        at = self.place(run_id)
        return (run_id,) if at is None else self.lines[at].members or (run_id,)

    def unfinished(self, run_ids: Collection[str]) -> bool:
        """Return whether one of these runs, as listed, has not ended."""
        ids = frozenset(run_ids)
        return any(one.state in UNFINISHED for one in self._entries if one.id in ids)

    def fold(self, run_id: str, *, folded: bool) -> None:
        """Hide or show the descendants of a run, or the series it represents."""
        (self._folded.add if folded else self._folded.discard)(run_id)
        (self._opened.discard if folded else self._opened.add)(run_id)
        self._arrange()

    def reveal(self, run_id: str) -> None:
        """Unfold whatever hides a run."""
        parents = {line.id: line.parent for line in arranged(self._entries)}
        above = parents.get(run_id)
        while above is not None:
            self._folded.discard(above)
            self._opened.add(above)
            above = parents[above]
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
