"""The history: every run ever made from this laptop, in one SQLite file."""

import difflib
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Unpack

from lumitui.app.history.known_snapshots import KnownSnapshots
from lumitui.app.history.metric_points import RunMetrics
from lumitui.app.history.pending_warnings import PendingWarnings
from lumitui.app.history.run import UNFINISHED, Changes, Run, unknown_run
from lumitui.app.history.run_row import column, from_row, to_row
from lumitui.app.history.sqlite_file import Database, FileFacts
from lumitui.remote.errors import HistoryError, InputError
from lumitui.remote.scheduler.protocol import State

_TEXTS = ("script", "patch", "binding")


class History:
    """The runs, their metrics and the last snapshot of each project's folder on a site.

    The command line and the TUI share the file, in several processes and threads.
    """

    def __init__(self, path: Path) -> None:
        """Open the history at `path`; make its folder (0700) and file (0600) when missing.

        A damaged file is set aside and a fresh history is begun; `take_warnings` says so.

        Raises:
            HistoryError: it cannot be opened, or a newer version of the program wrote it.
        """
        self._warnings = PendingWarnings()
        self._file = Database(path, self._warnings)
        self.metrics = RunMetrics(self._file)
        """The lines of each run's metrics.jsonl."""
        self.snapshots = KnownSnapshots(self._file)
        """The code that was sent to sites."""

    def close(self) -> None:
        """Close the file; the history cannot be used any more."""
        self._file.close()

    def take_warnings(self) -> list[str]:
        """Return what the person should know of the history, each sentence once, oldest first."""
        return self._warnings.take()

    def begin(self, run: Run) -> None:
        """Write a new run; it is on the disk when this returns.

        Raises:
            HistoryError: it could not be written, so that nothing may be sent.
        """
        with self._file.transaction() as db:
            _insert(db, run)

    def adopt(self, runs: Sequence[Run]) -> list[Run]:
        """Write those of `runs` that are not known yet and return them; known ones stay unchanged.

        Raises:
            HistoryError: it could not be written.
        """
        with self._file.transaction() as db:
            known = {row[0] for row in db.execute("SELECT id FROM runs")}
            new = [run for run in runs if run.id not in known]
            for run in new:
                _insert(db, run)
        return new

    def ids(self) -> set[str]:
        """Return the ids of all runs."""
        return {str(row[0]) for row in self._file.rows("SELECT id FROM runs")}

    def update(self, run_id: str, **changes: Unpack[Changes]) -> None:
        """Change a run.

        Raises:
            HistoryError: there is no such run, or it could not be written.
        """
        self.update_many([(run_id, changes)])

    def update_many(self, changes: Sequence[tuple[str, Changes]]) -> None:
        """Change several runs in one transaction: all of them or none.

        Raises:
            HistoryError: there is no such run, or it could not be written.
        """
        with self._file.transaction() as db:
            for run_id, change in changes:
                self._change(db, run_id, change)

    def observe(self, polled: Sequence[tuple[Run, Changes]]) -> list[str]:
        """Write what a poll means for runs, each given as it was when its site was asked.

        Another process may have polled later and written first: a final state stays, the numbers
        of attempts never go down, and what was learned of another job is not written.

        Returns:
            The ids of the runs whose state has changed.

        Raises:
            HistoryError: there is no such run, or it could not be written.
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
        """Return the run with the id `key`, or the only one whose id begins so; `last`: the newest.

        Raises:
            InputError: there is none, or there are several; the message names them.
        """
        if key == "last":
            found = self._runs("ORDER BY r.created DESC, r.id DESC LIMIT 1", texts=_TEXTS)
            if not found:
                raise InputError("There is no run yet.", "Submit a job file first.")
            return found[0]
        ids = [
            str(row[0])
            for row in self._file.rows(
                "SELECT id FROM runs WHERE substr(id, 1, length(?1)) = ?1"
                " ORDER BY id = ?1 DESC, created DESC LIMIT 6",
                (key,),
            )
        ]
        if not key or not ids:
            raise InputError(f"There is no run {key!r}.", self._nearest(key))
        if ids[0] != key and len(ids) > 1:
            more = ", …" if len(ids) > 5 else ""
            raise InputError(
                f"Several runs begin with {key!r}: {', '.join(ids[:5])}{more}.",
                "Give more of the id.",
            )
        for run in self._runs("WHERE r.id = ?", (ids[0],), texts=_TEXTS):
            return run
        raise HistoryError(
            f"The run {ids[0]} cannot be read.", "Upgrade lumitui: a newer one may have written it."
        )

    def page(
        self,
        limit: int = 50,
        before: float | None = None,
        site: str | None = None,
        state: State | None = None,
        text: str = "",
    ) -> list[Run]:
        """Return runs made before `before`, newest first, at most `limit`.

        `text` is searched in id, name, job id and note. The big texts are not read: `script` and
        `provenance.patch` are empty here; `get` has them.
        """
        where: list[str] = ["1"]
        values: list[str | float] = []
        for condition, value in (
            ("r.created < ?", before),
            ("r.site = ?", site),
            ("r.state = ?", state.value if state else None),
        ):
            if value is not None:
                where.append(condition)
                values.append(value)
        if text:
            escaped = text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
            columns = "r.id || ' ' || r.name || ' ' || coalesce(r.job_id, '') || ' ' || r.note"
            where.append(f"{columns} LIKE ? ESCAPE '\\'")
            values.append(f"%{escaped}%")
        return self._runs(
            f"WHERE {' AND '.join(where)} ORDER BY r.created DESC, r.id DESC LIMIT ?",
            (*values, limit),
            texts=("binding",),
        )

    def unfinished(self, site: str | None = None) -> list[Run]:
        """Return the runs to which something may still happen, oldest first.

        `script` and `binding` are read; `provenance.patch` is not, and is empty here.
        """
        where = f"r.state IN ({', '.join('?' for _ in UNFINISHED)})"
        values = UNFINISHED
        if site is not None:
            where, values = f"{where} AND r.site = ?", (*values, site)
        return self._runs(f"WHERE {where} ORDER BY r.created, r.id", values, ("script", "binding"))

    def lineage(self, run_id: str) -> list[Run]:
        """Return the run with its chain of parents and all its descendants, root first.

        The lineage of the root is the whole tree. The big texts are empty, as in `page`.
        """
        return self._runs(
            "WHERE r.id IN ("
            " WITH RECURSIVE up (id) AS (VALUES (?1) UNION"
            " SELECT parent FROM runs JOIN up USING (id) WHERE parent IS NOT NULL),"
            " down (id) AS (VALUES (?1) UNION"
            " SELECT runs.id FROM runs JOIN down ON runs.parent = down.id)"
            " SELECT id FROM up UNION SELECT id FROM down) ORDER BY r.created, r.id",
            (run_id,),
            ("binding",),
        )

    def facts(self) -> FileFacts:
        """Return where the file is, its size and schema, and what a check of it finds.

        Raises:
            HistoryError: it cannot be read.
        """
        return self._file.facts()

    def count(self) -> int:
        """Return how many runs there are."""
        return int(self._file.rows("SELECT count(*) FROM runs")[0][0])

    def count_unfinished(self) -> int:
        """Return the number of runs to which something may still happen."""
        marks = ", ".join("?" for _ in UNFINISHED)
        rows = self._file.rows(f"SELECT count(*) FROM runs WHERE state IN ({marks})", UNFINISHED)
        return int(rows[0][0])

    def _change(self, db: sqlite3.Connection, run_id: str, change: Changes) -> None:
        values = {name: column(value) for name, value in change.items()}
        if "binding" in values:
            db.execute(
                "UPDATE texts SET binding = ? WHERE run = ?", (values.pop("binding"), run_id)
            )
        sets = ", ".join(f"{name} = :{name}" for name in values) or "id = id"
        done = db.execute(f"UPDATE runs SET {sets} WHERE id = :id", values | {"id": run_id})
        if not done.rowcount:
            raise unknown_run(run_id)

    def _runs(
        self, tail: str, values: Sequence[str | float] = (), texts: Sequence[str] = ()
    ) -> list[Run]:
        columns = ["r.*"]
        for name in _TEXTS:
            empty = "NULL" if name == "binding" else "''"
            columns.append(f"{f't.{name}' if name in texts else empty} AS {name}")
        rows = self._file.rows(
            f"SELECT {', '.join(columns)} FROM runs r LEFT JOIN texts t ON t.run = r.id {tail}",
            values,
        )
        runs = []
        for row in rows:
            try:
                runs.append(from_row(dict(zip(row.keys(), row, strict=True))))
            except ValueError as error:
                self._warnings.add_once(
                    f"The run {row['id']} was written by another version and cannot be read: "
                    f"{error}"
                )
        return runs

    def _nearest(self, key: str) -> str:
        rows = self._file.rows("SELECT id FROM runs ORDER BY created DESC LIMIT 500")
        ids = [str(row[0]) for row in rows]
        near = difflib.get_close_matches(key, ids, n=3, cutoff=0.5) or ids[:3]
        return f"The nearest are {', '.join(near)}." if near else "There is no run yet."


def _insert(db: sqlite3.Connection, run: Run) -> None:
    row = to_row(run)
    texts = {name: row.pop(name) for name in _TEXTS} | {"run": run.id}
    for table, values in (("runs", row), ("texts", texts)):
        names, marks = ", ".join(values), ", ".join(f":{name}" for name in values)
        db.execute(f"INSERT INTO {table} ({names}) VALUES ({marks})", values)
