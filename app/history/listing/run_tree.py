"""Runs and their resubmissions as a tree, as far as they are in a list. Pure.

A family stands where its newest run would stand, its root first. The runs of one grid, or of one
run on several sizes, are a family too: the first that was sent stands for them all.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from lumitui.app.history.listing.find_runs import ListedRun
from lumitui.app.history.listing.state_filter import WENT_WRONG

_DEEPEST = 4
"""Levels that are indented: a chain of resubmissions may have hundreds."""


class TreeLine(NamedTuple):
    """A run in the tree."""

    id: str
    parent: str | None = None
    """The run above it in the tree; None: it is a root here."""
    guide: str = ""
    """What leads to it from its parent: `│└`."""
    children: int = 0
    """How many runs descend from it in the list."""
    folded: bool = False
    """Whether those are hidden."""
    summary: str = ""
    """Of the first run of a series: how many are in which state, of it and all below it."""


def flat(entries: Sequence[ListedRun]) -> list[TreeLine]:
    """Return a line for each run, no tree."""
    return [TreeLine(entry.id) for entry in entries]


def arranged(entries: Sequence[ListedRun], folded: Collection[str] = ()) -> list[TreeLine]:
    """Return the runs as trees; of the runs in `folded` the descendants are left out."""
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


def with_descendants(entries: Sequence[ListedRun], run: str) -> tuple[str, ...]:
    """Return a run and all that are below it in the tree."""
    lines = arranged(entries)
    at = next((at for at, line in enumerate(lines) if line.id == run), None)
    if at is None:
        return (run,)
    return tuple(line.id for line in lines[at : at + 1 + lines[at].children])


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
    """Return the first of a series with what it says of itself and all below it, each once."""
    members = {member.id: member for member in heads[line.id]}
    last = {member.member: member.state for member in members.values()}
    others = [states[one.id] for one in after[: line.children] if one.id not in members]
    counts = Counter([*last.values(), *others]).most_common()
    # A narrow column cuts the end: what failed must be read.
    counts.sort(key=lambda item: item[0] not in WENT_WRONG)
    if again := len(members) - len(last):
        counts.append(("sent again", again))
    return line._replace(summary=", ".join(f"{number} {state}" for state, number in counts))


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
        rows.append(line)
    return rows
