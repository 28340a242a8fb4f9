"""The history: every run sent from this laptop, in one SQLite file."""

import json
import sqlite3
from collections.abc import Collection, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from lumitui.app.history.file.sqlite_errors import PendingWarnings
from lumitui.app.history.file.sqlite_file import Database, FileFacts
from lumitui.app.history.known_snapshots import KnownSnapshots
from lumitui.app.history.listing.find_runs import NEWEST_FIRST, Filter, Order, RunFinder
from lumitui.app.history.rows.kept_texts import (
    RECORDED,
    drop_unused,
    insert_row,
    lost_texts,
    put_text,
    rewrite_texts,
)
from lumitui.app.history.rows.run_row import PARTS, TEXTS, numbers_of, to_row, written
from lumitui.app.history.run import UNFINISHED, Changes, Run, one_line, unknown_run
from lumitui.remote.site.errors import HistoryError, InputError
from lumitui.remote.site.states import State

if TYPE_CHECKING:
    from lumitui.app.history.listing.series_runs import KnownSeries
    from lumitui.app.history.metric_points import Glances, RunMetrics
    from lumitui.app.history.run_exchange import RunExchange

_TEXTS = tuple(kind for kind in TEXTS if kind not in PARTS)
"""Columns that `get` reads and lists do not."""
_LAST = (
    "SELECT id FROM runs WHERE rowid >= coalesce((SELECT r.rowid FROM runs r JOIN about"
    " ON r.id = value AND about.name = 'last'), 0) ORDER BY created DESC, id DESC LIMIT 1"
)
"""The run begun last, whatever the clock was, or a newer one that was imported after it."""
_MEANT = (
    "id = (SELECT id FROM runs WHERE instr(words, ?1) AND name = ?1"
    " ORDER BY created DESC, id DESC LIMIT 1)",
    # The bounds let SQLite search the index; no key ends with U+10FFFF.
    "id >= ?1 AND id <= ?1 || char(0x10FFFF) AND substr(id, 1, length(?1)) = ?1",
    "instr(words, ?1) AND job_id = ?1",
    "instr(words, ?1) AND substr(id, -length(?1)) = ?1",
)
"""Conditions for the run that a user names, in order of precedence: job name (newest run), start of
an id, job number, end of an id. `words` is in an index, so few rows are read."""
_WAS_AHEAD = "UPDATE runs SET created = submitted WHERE created > ?1 + 60 AND submitted <= ?1"
"""Nothing is changed while this clock is behind: then the site's time is later, too."""


class History:
    """The runs, their metrics and the last snapshot of each project's folder on a site.

    The CLI and the TUI share the file, in several processes and threads. Methods that read or write
    it raise HistoryError on failure, and those that change a run also if it does not exist.
    """

    def __init__(self, path: Path) -> None:
        """Open the history at `path`; create its folder (0700) and file (0600) if missing.

        A damaged file is set aside and replaced by a new history; `take_warnings` reports it.

        Raises:
            HistoryError: the file cannot be opened, or another version wrote it.
        """
        self._warnings = PendingWarnings()
        self._file = Database(path, self._warnings)
        self.finder = RunFinder(self._file, self._warnings)
        """Lists of runs: filtered, sorted, counted and paged."""
        self.snapshots = KnownSnapshots(self._file)
        """The code that was sent to sites."""

    @cached_property
    def metrics(self) -> "RunMetrics":
        """The lines of each run's metrics.jsonl."""
        from lumitui.app.history.metric_points import RunMetrics

        return RunMetrics(self._file)

    @cached_property
    def series(self) -> "KnownSeries":
        """Series of runs that are sent together."""
        from lumitui.app.history.listing.series_runs import KnownSeries

        return KnownSeries(self._file)

    @cached_property
    def exchange(self) -> "RunExchange":
        """The runs in a file exported for another laptop."""
        from lumitui.app.history.run_exchange import RunExchange

        return RunExchange(self._file)

    @cached_property
    def glances(self) -> "Glances":
        """The part of a run's metrics shown in lists."""
        from lumitui.app.history.metric_points import Glances

        return Glances(self.metrics)

    def close(self) -> None:
        """Close the file; the history can no longer be used."""
        self._file.close()

    def take_warnings(self) -> list[str]:
        """Return and remove the pending messages for the user, oldest first."""
        return self._warnings.take()

    def stamp(self) -> tuple[int, int, int]:
        """Return a value that changes with every write, by any process.

        Cheap: reads no row (sqlite.org/pragma.html#pragma_data_version).
        """
        return self._file.version()

    def begin(self, run: Run) -> None:
        """Write a new run; it is on the disk when the call returns.

        Runs sent while this machine's clock was ahead, which would be listed as newer for ever,
        get the time at which the site received them.

        Raises:
            HistoryError: the run could not be written, so nothing may be sent.
        """
        with self._file.transaction() as db:
            db.execute(_WAS_AHEAD, (run.created,))
            insert_row(db, to_row(run) | numbers_of(run))
            db.execute("INSERT OR REPLACE INTO about VALUES ('last', ?)", (run.id,))

    def adopt(self, runs: Sequence[Run]) -> list[Run]:
        """Write and return those of `runs` that the history lacks; others stay unchanged.

        A run that lost texts to disk damage gets them back and is returned too.
        """
        written = []
        with self._file.transaction() as db:
            for run in runs:
                if db.execute("SELECT 1 FROM runs WHERE id = ?", (run.id,)).fetchone() is None:
                    insert_row(db, to_row(run) | numbers_of(run))
                    written.append(run)
                elif rewrite_texts(db, run.id, to_row(run)):
                    written.append(run)
        return written

    def whole_ids(self) -> set[str]:
        """Return the ids of the runs that have every text of their record on the site."""
        lost = self._file.read(lost_texts)
        columns = ", ".join(RECORDED)
        rows = self._file.rows(f"SELECT id, {columns} FROM runs")
        return {str(row[0]) for row in rows if lost.isdisjoint(row[1:])}

    def update(self, run_id: str, **changes: Unpack[Changes]) -> None:
        """Change a run."""
        self.update_many([(run_id, changes)])

    def update_many(self, changes: Sequence[tuple[str, Changes]]) -> None:
        """Change several runs in one transaction: all of them or none."""
        with self._file.transaction() as db:
            for run_id, change in changes:
                self._change(db, run_id, change)

    def tag(self, run_ids: Sequence[str], words: str) -> None:
        """Add tags to the notes of runs, or remove tags with a leading `-`, in one transaction.

        Raises:
            InputError: a word is not a tag, or a note would get too long.
            HistoryError: it could not be written.
        """
        from lumitui.app.history.listing.tags import with_tags

        runs = self.finder.with_ids(run_ids)
        notes = [(run.id, one_line(with_tags(run.note, words))) for run in runs.values()]
        self.update_many([(run_id, {"note": note}) for run_id, note in notes])

    def observe(self, polled: Sequence[tuple[Run, Changes]]) -> list[str]:
        """Write a poll's changes to runs, each passed as it was before the query.

        Another process may have polled later but written first: a final state stays, attempt
        numbers never decrease, and changes from another job are dropped. Returns the ids of the
        runs whose state has changed.
        """
        moved = []
        with self._file.transaction() as db:
            for run, seen in polled:
                row = db.execute(
                    "SELECT state, job_id, attempt, exits FROM runs WHERE id = ?", (run.id,)
                ).fetchone()
                if row is None:
                    raise unknown_run(run.id)
                state, job_id, attempt, exits = row
                if state not in UNFINISHED or job_id != run.job_id:
                    continue
                changes = seen.copy()
                if "attempt" in changes:
                    changes["attempt"] = max(attempt, changes["attempt"])
                if "exits" in changes:
                    changes["exits"] = max(exits, changes["exits"])
                self._change(db, run.id, changes)
                if changes.get("state", state) != state:
                    moved.append(run.id)
        return moved

    def get(self, key: str) -> Run:
        """Return the run with the id `key`, or the run that `key` otherwise identifies.

        `last` is the newest run, and a job's or a grid's name is its newest run; a grid has no
        resubmissions. Otherwise `key` is the start of an id, a job's number, or the end of an id:
        the first of these that fits.

        Raises:
            InputError: no run fits, or several do; the message names them.
            HistoryError: the run cannot be read; a warning gives the reason. `spec` reads the job
                file later, and may raise it too.
        """
        if key == "last":
            newest = self._file.rows(_LAST)
            if not newest:
                raise InputError("There are no runs yet.", "Submit a job file first.")
            return self._whole(str(newest[0][0]))
        if self._file.rows("SELECT 1 FROM runs WHERE id = ?", (key,)):
            return self._whole(key)
        ids = next((ids for where in _MEANT if (ids := self._ids_where(where, key))), [])
        if not key or not ids:
            raise InputError(f"{key!r} is not a run.", self._nearest(key))
        if len(ids) == 1:
            return self._whole(ids[0])
        members = [self.series.member_of(one) or "" for one in ids]
        if not all(one.startswith(f"{key}-") for one in (*ids, *members)):
            more = ", …" if len(ids) > 5 else ""
            raise InputError(
                f"{key!r} matches several runs: {', '.join(ids[:5])}{more}.", "Type more of the id."
            )
        return self._whole(next((one for one in ids if one in members), members[0]))

    def _ids_where(self, where: str, key: str) -> list[str]:
        query = f"SELECT id FROM runs WHERE {where} ORDER BY created DESC, id DESC LIMIT 6"
        return [str(row[0]) for row in self._file.rows(query, (key,))]

    def page(
        self,
        limit: int = 50,
        site: str | None = None,
        state: State | None = None,
    ) -> list[Run]:
        """Return at most `limit` of the newest runs.

        Of the texts, only `spec`, `layout` and `price` are read; the others are empty. `get` reads
        all.
        """
        return self.finder.listed(limit, Filter(site, state))

    def listed(self, limit: int, criteria: Filter, order: Order = NEWEST_FIRST) -> list[Run]:
        """Return at most `limit` of the runs that pass, sorted; same texts as `page`."""
        return self.finder.listed(limit, criteria, order)

    def unfinished(self, site: str | None = None) -> list[Run]:
        """Return the unfinished runs, oldest first.

        Reads `script` and `binding`; `provenance.patch` is empty.
        """
        where = f"r.state IN ({', '.join('?' for _ in UNFINISHED)})"
        values = UNFINISHED
        if site is not None:
            where, values = f"{where} AND r.site = ?", (*values, site)
        tail = f"WHERE {where} ORDER BY r.created, r.id"
        return self.finder.runs(tail, values, ("script", "binding"))

    def lineage(self, run_id: str) -> list[Run]:
        """Return the run with its chain of parents and all its descendants, root first.

        The lineage of the root is the whole tree. Also reads `deepspeed_config`.
        """
        return self.finder.runs(
            "WHERE r.id IN ("
            " WITH RECURSIVE up (id) AS (VALUES (?1) UNION"
            " SELECT parent FROM runs JOIN up USING (id) WHERE parent IS NOT NULL),"
            " down (id) AS (VALUES (?1) UNION"
            " SELECT runs.id FROM runs JOIN down ON runs.parent = down.id)"
            " SELECT id FROM up UNION SELECT id FROM down) ORDER BY r.created, r.id",
            (run_id,),
            ("deepspeed_config",),
            late=True,
        )

    def facts(self, *, check: bool = False) -> FileFacts:
        """Return the file's path, size and schema; with `check`, also its damage.

        The check reads the whole file.
        """
        return self._file.facts(check=check)

    def count(self) -> int:
        """Return the number of runs."""
        return int(self._file.rows("SELECT count(*) FROM runs")[0][0])

    def count_unfinished(self) -> int:
        """Return the number of unfinished runs."""
        marks = ", ".join("?" for _ in UNFINISHED)
        rows = self._file.rows(f"SELECT count(*) FROM runs WHERE state IN ({marks})", UNFINISHED)
        return int(rows[0][0])

    def unfinished_states(self) -> dict[str, tuple[str, State]]:
        """Return the site and state of each unfinished run."""
        marks = ", ".join("?" for _ in UNFINISHED)
        query = f"SELECT id, site, state FROM runs WHERE state IN ({marks})"
        rows = self._file.rows(query, UNFINISHED)
        return {str(row[0]): (str(row[1]), State(row[2])) for row in rows}

    def states(self, run_ids: Collection[str]) -> dict[str, State]:
        """Return the states of those of `run_ids` that the history has, as far as known."""
        query = "SELECT id, state FROM runs WHERE id IN (SELECT value FROM json_each(?))"
        rows = self._file.rows(query, (json.dumps(list(run_ids)),))
        return {str(row[0]): State(row[1]) for row in rows if row[1] in [*State]}

    def begun_since(self, moment: float) -> list[str]:
        """Return the ids of the runs created after `moment`, in epoch seconds."""
        rows = self._file.rows("SELECT id FROM runs WHERE created > ?", (moment,))
        return [str(row[0]) for row in rows]

    def _change(self, db: sqlite3.Connection, run_id: str, change: Changes) -> None:
        values = {name: written(value) for name, value in change.items()}
        earlier = None
        if "binding" in values:
            values["binding"] = put_text(db, "binding", change["binding"])
            earlier = db.execute("SELECT binding FROM runs WHERE id = ?", (run_id,)).fetchone()
        sets = ", ".join(f"{name} = :{name}" for name in values) or "id = id"
        done = db.execute(f"UPDATE runs SET {sets} WHERE id = :id", values | {"id": run_id})
        if not done.rowcount:
            raise unknown_run(run_id)
        if earlier:
            drop_unused(db, "binding", earlier[0])

    def _whole(self, run_id: str) -> Run:
        for run in self.finder.runs("WHERE r.id = ?", (run_id,), texts=_TEXTS, late=True):
            return run
        raise HistoryError(f"The run {run_id} cannot be read.", "The warning gives the reason.")

    def _nearest(self, key: str) -> str:
        rows = self._file.rows("SELECT id FROM runs ORDER BY created DESC LIMIT 500")
        ids = [str(row[0]) for row in rows]
        from difflib import get_close_matches

        near = get_close_matches(key, ids, n=3, cutoff=0.5) or ids[:3]
        return f"The nearest are {', '.join(near)}." if near else "There are no runs yet."
