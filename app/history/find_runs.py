"""Runs read from the history's file: by what, in which order, and with which of their texts."""

import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lumitui.app.history.file.sqlite_errors import RECOVER
from lumitui.app.history.file.sqlite_file import Database
from lumitui.app.history.pending_warnings import PendingWarnings
from lumitui.app.history.run import Run
from lumitui.app.history.run_row import COLUMNS, PARTS, from_row, part_of
from lumitui.app.history.texts.packing import LostText, unpack
from lumitui.app.history.texts.store import OF_RUNS
from lumitui.remote.scheduler.protocol import State

CHUNK = 500
"""Runs that are in memory at once when all are read."""
_EMPTY: dict[str, str | None] = {
    "command": "", "deepspeed_config": None, "script": "", "machinery": None, "probe": None,
    "patch": "", "binding": None,
}  # fmt: skip
"""What a text is that was not read."""
_DISPENSABLE = frozenset({"command", "script", "machinery", "probe", "patch", "binding"})
"""Texts without which a run is still shown. A DeepSpeed configuration is none of them: without it
a resubmission would take the run for another kind."""


@dataclass(frozen=True)
class Filter:
    """Which runs to list; a field that is empty lets all pass."""

    site: str | None = None
    state: State | None = None
    text: str = ""
    """Searched in id, name, job id and note."""

    def conditions(self) -> tuple[list[str], list[str | float]]:
        """Return this in SQL, and its values."""
        found: list[tuple[str, str]] = []
        if self.site is not None:
            found.append(("r.site = ?", self.site))
        if self.state is not None:
            found.append(("r.state = ?", self.state.value))
        if self.text:
            escaped = self.text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
            found.append((r"r.words LIKE ? ESCAPE '\'", f"%{escaped}%"))
        return [condition for condition, _ in found], [value for _, value in found]


@dataclass(frozen=True)
class Place:
    """A run's place in the list, which is sorted by these."""

    created: float
    id: str


class RunFinder:
    """What reads runs from one file."""

    def __init__(self, file: Database, warnings: PendingWarnings) -> None:
        """Read from `file`; `warnings` receives which runs cannot be read, and why."""
        self._file = file
        self._warnings = warnings

    def page(self, limit: int, after: Place | None, wanted: Filter) -> list[Run]:
        """Return at most `limit` runs that follow `after` in the list, newest first."""
        return [run for row in self._rows(limit, after, wanted) if (run := self._run(row))]

    def every(self, limit: int, wanted: Filter) -> Iterator[Run]:
        """Yield runs newest first, at most `limit`; few of them are in memory at once."""
        place: Place | None = None
        while limit > 0:
            size = min(limit, CHUNK)
            rows = self._rows(size, place, wanted)
            for row in rows:
                if run := self._run(row):
                    yield run
            if len(rows) < size:
                return
            limit -= size
            place = Place(rows[-1]["created"], rows[-1]["id"])

    def runs(
        self, tail: str, values: Sequence[str | float] = (), texts: Sequence[str] = ()
    ) -> list[Run]:
        """Return the runs `r` that `tail` selects, in its order, with `texts` and no others."""
        rows = self._file.rows(f"{_select('', texts)} {tail}", values)
        return [run for row in rows if (run := self._run(row, texts))]

    def _rows(self, limit: int, after: Place | None, wanted: Filter) -> list[sqlite3.Row]:
        where, values = wanted.conditions()
        if after is not None:
            where.append("(r.created, r.id) < (?, ?)")
            values += [after.created, after.id]
        return self._file.rows(
            # Whatever is filtered, one walk along this index; SQLite's own choice for a site of
            # many runs and a state of few reads a row of the table for each.
            f"{_select('INDEXED BY runs_listed')} WHERE {' AND '.join(where) or '1'}"
            " ORDER BY r.created DESC, r.id DESC LIMIT ?",
            (*values, limit),
        )

    def _run(self, row: sqlite3.Row, texts: Sequence[str] = ()) -> Run | None:
        values = {name: row[name] for name in COLUMNS} | _EMPTY
        kind = ""
        try:
            for kind in PARTS:
                values[kind] = part_of(kind, row[f"{kind}_packed"], row[f"{kind}_digest"])
            for kind in texts:
                values[kind] = self._text(row, kind)
            return from_row(values)
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
            if kind not in _DISPENSABLE:
                raise
            self._lost(row, kind, f"is shown without its {kind}, which is {error}")
            return _EMPTY[kind]

    def _lost(self, row: sqlite3.Row, kind: str, what: str) -> None:
        """Warn of a lost text once, however many runs share it."""
        self._warnings.add_once(
            f"The run {row['id']} {what}, as for every run that shares it. {RECOVER}",
            key=f"{kind} {row[kind]}",
        )


def _select(index: str, texts: Sequence[str] = ()) -> str:
    """Return the beginning of a query: a run's columns with its parts, and those of `texts`."""
    columns = [f"r.{name}" for name in (*COLUMNS, *OF_RUNS)]
    joins = []
    for kind in (*PARTS, *texts):
        columns += [f"{kind}_text.packed AS {kind}_packed", f"{kind}_text.digest AS {kind}_digest"]
        joins.append(f"LEFT JOIN blobs {kind}_text ON {kind}_text.id = r.{kind}")
    return f"SELECT {', '.join(columns)} FROM runs r {index} {' '.join(joins)}"
