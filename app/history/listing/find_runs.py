"""Reading runs from the history's file: selection, order, and required texts."""

import sqlite3
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from lumitui.app.history.file.sqlite_errors import RECOVER, PendingWarnings
from lumitui.app.history.file.sqlite_file import Database
from lumitui.app.history.rows.kept_texts import LostText, unpack
from lumitui.app.history.rows.run_row import EMPTY, PARTS, PLAIN, TEXTS, Part, from_row, part_of
from lumitui.app.history.run import Run
from lumitui.remote.site.states import State

if TYPE_CHECKING:
    from lumitui.app.history.listing.filters import Condition, FilterTerm


class OrderBy(StrEnum):
    """The sort key of a list."""

    NEWEST = "newest"
    STATE = "state"
    NAME = "name"
    NODES = "nodes"
    COST = "cost"
    END = "end"


@dataclass(frozen=True)
class Order:
    """The sort key of a list, and whether it is reversed."""

    by: OrderBy = OrderBy.NEWEST
    reverse: bool = False

    def next(self) -> "Order":
        """Return the order after a press of its key."""
        kinds = list(OrderBy)
        return Order(kinds[(kinds.index(self.by) + 1) % len(kinds)])

    def chosen(self, by: OrderBy) -> "Order":
        """Return the order after a click on a heading; a second click reverses it."""
        return Order(by, not self.reverse) if by is self.by else Order(by)


NEWEST_FIRST = Order()
_FIRST = (
    State.RUNNING,
    State.FINISHING,
    State.QUEUED,
    State.SENDING,
    State.UNKNOWN,
    State.FAILED,
    State.OUT_OF_MEMORY,
    State.TIMEOUT,
    State.NODE_FAILED,
    State.PREEMPTED,
    State.REFUSED,
    State.NOT_SENT,
    State.DONE,
    State.CANCELLED,
)
"""Runs that may need the user's attention come first."""
_STATE = (
    "CASE r.state "
    + " ".join(f"WHEN '{state}' THEN {rank}" for rank, state in enumerate(_FIRST))
    + f" ELSE {len(_FIRST)} END"
)
_NEVER = 1e12
"""Sort key of an unfinished run in the list by end, which begins with those."""
# Same as Run.billed and Run.elapsed.
_OVER = ", ".join(f"'{state}'" for state in State if state.is_final or state is State.UNKNOWN)
_SPENT = (
    "r.rate / 3600 * CASE"
    " WHEN r.started IS NULL THEN 0.0"
    f" WHEN r.state IN ({_OVER}) THEN max(0.0, coalesce(r.ended, r.updated) - r.started)"
    " WHEN r.updated > 0 THEN max(0.0, min({now}, r.updated) - r.started)"
    " ELSE max(0.0, {now} - r.started) END"
)
_FINAL = ", ".join(f"'{state}'" for state in State if state.is_final)
_COST = (
    f"-CASE WHEN r.ended IS NOT NULL AND r.state IN ({_FINAL}) THEN {_SPENT}"
    f" ELSE min(r.most, {_SPENT}) END"
)
_FIRST_KEY = {
    OrderBy.STATE: _STATE,
    OrderBy.NAME: "r.name COLLATE NOCASE",
    OrderBy.NODES: "-r.nodes",
    OrderBy.COST: _COST,
    OrderBy.END: f"-coalesce(r.ended, {_NEVER})",
}


def keys_of(order: Order, now: float) -> tuple[str, ...]:
    """Return the sort expressions of a list; the last ones make the order unique."""
    if order.by is OrderBy.NEWEST:
        return ("r.created", "r.id")
    return (_FIRST_KEY[order.by].replace("{now}", repr(now)), "-r.created", "r.id")


def is_descending(order: Order) -> bool:
    """Return the common direction of all keys, so that SQLite can compare them as one row."""
    return (order.by is OrderBy.NEWEST) != order.reverse


@dataclass(frozen=True)
class Filter:
    """A selection of runs; an empty field matches all."""

    site: str | None = None
    state: State | None = None
    terms: "tuple[FilterTerm, ...]" = ()
    """Terms of the filter language; all must match."""

    def conditions(self, now: float) -> "list[Condition]":
        """Return the selection as SQL; ages are relative to `now`."""
        parts: list[Condition] = []
        if self.site is not None:
            parts.append(("r.site = ?", [self.site]))
        if self.state is not None:
            parts.append(("r.state = ?", [self.state.value]))
        if not self.terms:
            return parts
        from lumitui.app.history.listing.filters import condition_of

        return parts + [condition_of(term, now) for term in self.terms]


EVERYTHING = Filter()
Place = tuple[str | float, ...]
"""A run's position in a list: the values of its sort key."""


@dataclass(frozen=True)
class RunListing:
    """A list of runs: its selection, order, and the time to which ages and costs are computed."""

    criteria: Filter = EVERYTHING
    order: Order = NEWEST_FIRST
    now: float = 0.0


class ListedRun(NamedTuple):
    """A run's entry in a list before it is read."""

    id: str
    parent: str | None
    place: Place
    series: str | None = None
    """The grid or ladder that the run belongs to."""
    member: int = 0
    """Its place in the series; a later run of the same place replaces this one."""
    state: str = ""


class RunFinder:
    """Reads runs from one file."""

    def __init__(self, file: Database, warnings: PendingWarnings) -> None:
        """Read from `file`; `warnings` receives the unreadable runs, with reasons."""
        self._file = file
        self._warnings = warnings

    def version(self) -> tuple[int, ...]:
        """Return a value that changes with every change of the file."""
        return self._file.version()

    def listed(self, limit: int, criteria: Filter, order: Order = NEWEST_FIRST) -> list[Run]:
        """Return the first `limit` runs in `order`."""
        rows = self._rows(_selected(()), RunListing(criteria, order, time.time()), limit, None)
        return [run for row in rows if (run := self._run(row, late=True))]

    def entries(self, listing: RunListing, limit: int, after: Place | None) -> list[ListedRun]:
        """Return at most `limit` entries after `after` in a list, without reading the runs."""
        rows = self._rows(_ENTRY, listing, limit, after)
        return [ListedRun(row[0], row[1], row[5:], row[2], row[3] or 0, row[4]) for row in rows]

    def with_ids(self, ids: Sequence[str]) -> dict[str, Run]:
        """Return the runs with these ids (at most some hundreds); omits missing ones."""
        marks = ", ".join("?" for _ in ids)
        runs = self.runs(f"WHERE r.id IN ({marks})", ids, late=True)
        return {run.id: run for run in runs}

    def newest_in(self, states: Collection[State]) -> str | None:
        """Return the id of the newest run in one of `states`, or None."""
        marks = ", ".join("?" for _ in states)
        rows = self._file.rows(
            f"SELECT r.id FROM runs r INDEXED BY runs_state WHERE r.state IN ({marks})"
            " ORDER BY r.created DESC, r.id DESC LIMIT 1",
            sorted(state.value for state in states),
        )
        return str(rows[0][0]) if rows else None

    def count_states(self, criteria: Filter = EVERYTHING) -> dict[State, int]:
        """Return the number of passing runs in each state that occurs."""
        where, values = self._where(criteria, time.time())
        # Without conditions, SQLite counts in the shortest index.
        index = "INDEXED BY runs_listed" if values else ""
        rows = self._file.rows(
            f"SELECT r.state, count(*) FROM runs r {index} {where} GROUP BY r.state", values
        )
        return {State(row[0]): int(row[1]) for row in rows if row[0] in [*State]}

    def runs(
        self,
        tail: str,
        values: Sequence[str | float] = (),
        texts: Sequence[str] = (),
        *,
        late: bool = False,
    ) -> list[Run]:
        """Return the runs `r` that `tail` selects, in its order, with only `texts`."""
        selected = _selected(texts)
        rows = self._file.rows(
            f"SELECT {', '.join(selected.columns)} FROM runs r {selected.joins} {tail}", values
        )
        return [run for row in rows if (run := self._run(row, texts, late=late))]

    def _rows(
        self, selected: "_Selected", listing: RunListing, limit: int, after: Place | None
    ) -> list[sqlite3.Row]:
        """Return a page of a list in one walk along its index, whatever the filter.

        For a site with many runs and a rare state, SQLite's own plan would read a table row for
        each run.
        """
        order = listing.order
        keys = keys_of(order, listing.now)
        where, values = self._where(listing.criteria, listing.now)
        if after is not None:
            beyond = "<" if is_descending(order) else ">"
            marks = ", ".join("?" for _ in keys)
            where += f"{' AND' if where else 'WHERE'} ({', '.join(keys)}) {beyond} ({marks})"
            values += after
        columns = [*selected.columns, *(f"{key} AS key_{at}" for at, key in enumerate(keys))]
        direction = "DESC" if is_descending(order) else "ASC"
        return self._file.rows(
            f"SELECT {', '.join(columns)} FROM runs r INDEXED BY runs_listed"
            f" {selected.joins} {where}"
            f" ORDER BY {', '.join(f'{key} {direction}' for key in keys)} LIMIT ?",
            (*values, limit),
        )

    def _where(self, criteria: Filter, now: float) -> tuple[str, list[str | float]]:
        parts = criteria.conditions(now)
        where = " AND ".join(condition for condition, _ in parts)
        return f"WHERE {where}" if where else "", [value for _, each in parts for value in each]

    def _run(
        self, row: sqlite3.Row, texts: Sequence[str] = (), *, late: bool = False
    ) -> Run | None:
        values = {name: row[name] for name in PLAIN} | EMPTY
        kind = ""
        try:
            for kind in PARTS:
                values[kind] = _part(kind, row[f"{kind}_packed"], row[f"{kind}_digest"])
            for kind in texts:
                values[kind] = self._text(row, kind)
            return from_row(values, late=late)
        except LostText as error:
            self._lost(row, kind, f"cannot be read: its {kind} is {error}")
        except ValueError as error:
            self._warnings.add_once(
                f"The run {row['id']} was written by another version and cannot be read: {error}"
            )
        return None

    def _text(self, row: sqlite3.Row, kind: str) -> str | None:
        if row[kind] is None:
            return None
        try:
            return unpack(row[f"{kind}_packed"], row[f"{kind}_digest"]).decode("utf-8", "replace")
        except LostText as error:
            if TEXTS[kind].needed:
                raise
            self._lost(row, kind, f"is shown without its {kind}, which is {error}")
            return EMPTY[kind]

    def _lost(self, row: sqlite3.Row, kind: str, what: str) -> None:
        """Warn of a damaged text once, however many runs share it."""
        self._warnings.add_once(
            f"The run {row['id']} {what}; so is every run that shares it. {RECOVER}",
            key=f"{kind} {row[kind]}",
        )


@lru_cache(maxsize=2048)
def _part(kind: str, packed: object, digest: object) -> Part:
    """Return the content of a stored text, which many runs may share; reads it once.

    Raises:
        LostText: the text is damaged.
        ValueError: another version wrote it; the message names the field.
    """
    return part_of(kind, unpack(packed, digest).decode("utf-8", "replace"))


@dataclass(frozen=True)
class _Selected:
    """The columns of a query for runs."""

    columns: tuple[str, ...]
    joins: str = ""


_ENTRY = _Selected(
    ("r.id", "r.parent", "member.series", "member.place", "r.state"),
    "LEFT JOIN series_runs member ON member.run = r.id",
)


def _selected(texts: Sequence[str]) -> _Selected:
    """Return a run's columns with its parts, and those of `texts`."""
    columns = [f"r.{name}" for name in (*PLAIN, *TEXTS)]
    joins = []
    for kind in (*PARTS, *texts):
        columns += [f"{kind}_text.packed AS {kind}_packed", f"{kind}_text.digest AS {kind}_digest"]
        joins.append(f"LEFT JOIN blobs {kind}_text ON {kind}_text.id = r.{kind}")
    return _Selected(tuple(columns), " ".join(joins))
